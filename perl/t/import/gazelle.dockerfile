FROM perl:5.38-slim
RUN cpm install -g --cpanfile cpanfile
WORKDIR /app
COPY . .
ENV PLACK_ENV=production
EXPOSE 5000
ENTRYPOINT ["/usr/local/bin/plackup", "-s", "Gazelle", "-I", "lib"]
CMD ["--port", "5000", "--max-workers", "20", "--max-reqs-per-child", "5000", "--min-reqs-per-child", "4000", "-a", "script/app.psgi"]

FROM debian:bookworm
RUN apt-get install -y starman libserver-starter-perl
CMD cd /app && carton install && exec carton exec -- start_server --port ${PORT:-8080} -- plackup -s Starlet -E production --max-workers=${WORKERS:-8} --max-reqs-per-child=500 app.psgi 2>&1

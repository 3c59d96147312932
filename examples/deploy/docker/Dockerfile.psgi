# PSGI application on Debian's Perl. From the top of the repository:
#   docker build --file examples/deploy/docker/Dockerfile.psgi --tag board-psgi .
FROM debian:12-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends build-essential perl libperl-dev libplack-perl \
    zlib1g-dev libzstd-dev libbrotli-dev libssl-dev libnghttp2-dev pkg-config && rm -rf /var/lib/apt/lists/*
COPY core /src/core
COPY perl /src/perl
COPY spec /src/spec
COPY tools /src/tools
COPY doc /src/doc
COPY README.md CHANGES.md LICENSE ARCHITECTURE.md /src/
RUN cd /src && tar xf "$(tools/package-dist /src)" && cd Oribi-* && perl Makefile.PL INSTALL_BASE=/perl && make install

FROM debian:12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends perl libplack-perl libbrotli1 libssl3 libnghttp2-14 && rm -rf /var/lib/apt/lists/*
COPY --from=build /perl /perl
ENV PERL5LIB=/perl/lib/perl5 PATH=/perl/bin:/usr/local/bin:/usr/bin:/bin
WORKDIR /srv/app
COPY examples/deploy/app.psgi /srv/app/
USER www-data
EXPOSE 9292
# As process 1 the supervisor gets the TERM of `docker stop` itself, which the form with brackets sees to, and reaps
# orphans.
STOPSIGNAL SIGTERM
CMD ["oribi-psgi", "--env", "production", "--bind", "0.0.0.0:9292", "--shutdown-timeout", "8s", "app.psgi"]

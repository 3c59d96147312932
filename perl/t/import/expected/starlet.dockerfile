# Configuration of Oribi, made by `oribi-psgi import` from starlet.dockerfile (start_server, Starlet).
# 4 settings taken over.
# Keep it as config/oribi.pl, which oribi-psgi reads by itself, and try it: oribi-psgi check
# Start: CMD cd /app && carton install && exec carton exec -- oribi-psgi app.psgi 2>&1

+{
    # --port ${PORT:-8080} of start_server
    bind => '0.0.0.0:' . ($ENV{PORT} // 8080),
    # -E production
    env => 'production',
    # --max-workers=${WORKERS:-8}
    workers => ($ENV{WORKERS} // 8),
    # --max-reqs-per-child=500
    requests_max => 500,
}

# Configuration of Oribi, made by `oribi-psgi import` from gazelle.dockerfile (Gazelle).
# 6 settings taken over.
# Keep it as config/oribi.pl, which oribi-psgi reads by itself, and try it: oribi-psgi check
# Start: ENTRYPOINT ["/usr/local/bin/oribi-psgi", "script/app.psgi"]
# CMD has only its flags, and may go.

+{
    # -I lib
    include => 'lib',
    # --port 5000
    port => 5000,
    # --max-workers 20
    workers => 20,
    # --max-reqs-per-child 5000
    requests_max => 5000,
    # --min-reqs-per-child 4000
    min_reqs_per_child => 4000,
    # default of Gazelle
    host => '0.0.0.0',
}

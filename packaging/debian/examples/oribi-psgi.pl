# Read by oribi-psgi@example.service: systemctl enable --now oribi-psgi@example answers on http://127.0.0.1:9293.
#
# A server of your own, say board: copy this to /etc/oribi-psgi/board.pl, let chdir name the folder of its app.psgi,
# choose an address, check the file with `oribi-psgi check @board`, and run systemctl
# enable --now oribi-psgi@board. Options: oribi-psgi(1) and /usr/share/doc/oribi-psgi/doc/options.md.
{
    chdir => '/usr/share/oribi-psgi/example',
    bind  => '127.0.0.1:9293',
    # access_log => '/var/log/oribi-psgi/example/access.log',
    # workers    => 4,
};

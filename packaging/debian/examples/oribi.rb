# Read by oribi@example.service: systemctl enable --now oribi@example answers on http://127.0.0.1:9292.
#
# A server of your own, say board: copy this to /etc/oribi/board.rb, let chdir name the folder of its config.ru, choose
# an address, check the file with `oribi check @board`, and run systemctl enable --now
# oribi@board. Options: oribi(1) and /usr/share/doc/oribi/doc/options.md.
chdir "/usr/share/oribi/example"
bind "127.0.0.1:9292"
# access_log "/var/log/oribi/example/access.log"
# workers 4

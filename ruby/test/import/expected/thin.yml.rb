# Configuration of Oribi, made by `oribi import` from settings/thin.yml (Thin).
# 11 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# chdir: "/"
chdir "/"
# environment: "production"
env "production"
# address: "127.0.0.1"
host "127.0.0.1"
# port: 3000
port 3000
# timeout: 30
timeout 30
# log: "/tmp/thin.log"
error_log "/tmp/thin.log"
# pid: "/tmp/thin.pid"
pid_file "/tmp/thin.pid"
# max_conns: 1024
connections_max 1024
# Not taken over: connections_max is set above
#   max_persistent_conns: 512
# Not taken over: it has no value
#   require: []
# wait: 30
boot_timeout 30
# servers: 3; all on one address; in Thin each has its own
workers 3
# daemonize: true
daemonize true
# Not taken over: not there and not needed: a reload replaces the workers one by one
#   onebyone: true

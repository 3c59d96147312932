# Configuration of Oribi, made by `oribi import` from settings/Passengerfile.json (Passenger).
# 11 settings taken over, 4 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# environment: "production"
env "production"
# port: 80
port 80
# address: "0.0.0.0"
host "0.0.0.0"
# daemonize: true
daemonize true
# user: "www-data"
user "www-data"
# log_file: "/tmp/passenger.log"
error_log "/tmp/passenger.log"
# pid_file: "/tmp/passenger.pid"
pid_file "/tmp/passenger.pid"
# max_pool_size: 6
workers 6
# Not taken over: not there and not needed: all workers are there from the start
#   min_instances: 6
# memory_limit: 512
memory_max "512M"
# spawn_method: "smart"
preload true
# Not taken over: let the service set the environment
#   envvars: {"DATABASE_URL":"postgres://localhost/shop","X":"#{exit!}"}
# static_files_dir: "public"
static "public"
# Not taken over: there is no nginx in it: what its template does belongs to a proxy in front
#   nginx_config_template: "config/nginx.conf.erb"
# Not taken over: quiet and verbose say how much is logged
#   log_level: 3

# What Passenger does unless told otherwise:
restart_file "tmp/restart.txt"

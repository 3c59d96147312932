# Configuration of Oribi, made by `oribi import` from settings/passenger-socket.json (Passenger).
# 6 settings taken over, 7 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# socket_file: "/tmp/shop.sock"
socket "/tmp/shop.sock"
# Not taken over: not there and not needed: the application is a rackup file
#   app_type: "rack"
# Not taken over: the application is the command's argument, as in: oribi config.ru, oribi-psgi app.psgi
#   startup_file: "config.ru"
# Not taken over: threads N are calls at a time in one worker
#   concurrency_model: "thread"
# thread_count: 8
threads 8
# max_pool_size: 2
workers 2
# max_request_time: 60
call_timeout 60
# max_request_queue_size: 200
queue_max 200
# Not taken over: not there and not needed: all workers stay
#   pool_idle_time: 0
# Not taken over: not there and not needed: every reload replaces the workers one by one
#   rolling_restarts: true
# restart_dir: "shared/"
restart_file "shared/restart.txt"
# Not taken over: the flag is off, which is so by itself
#   sticky_sessions: false
# Not taken over: bind tls://host:port?certificate=FILE&key=FILE
#   ssl: true

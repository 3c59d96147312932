# Configuration of Oribi, made by `oribi import` from rainbows.conf.rb (Rainbows).
# 3 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# Not taken over (line 1): threads N are calls at a time in one worker, for each `use`; idle_timeout is its
# keepalive_timeout
#   Rainbows! do
#     use :ThreadPool
#     worker_connections 20
#     keepalive_timeout 5
#   end
# worker_processes in Rainbows
workers 2
# listen in Rainbows; not there and not needed, or the system's: tcp_nodelay
bind 8080
# after_fork in Rainbows, called with server, worker
after_fork(objects: true) { |server, worker| GC.disable }
# Not taken over (line 9): worker.user: user and group say whose the workers are
#   after_fork { |server, worker| worker.user("www-data", "www-data") if Process.euid == 0 }

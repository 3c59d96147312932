# Configuration of Oribi, made by `oribi import` from unicorn-listeners.rb (Unicorn).
# 4 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# listen in Unicorn
bind "127.0.0.1:8080"
# listen in Unicorn
bind ENV["UNICORN_SOCKET"] if ENV["UNICORN_SOCKET"]
# worker_processes in Unicorn
workers 2
# Not taken over (line 4): server.listen: bind takes every address; there is none for one worker
#   after_fork do |server, worker|
#     addr = "127.0.0.1:#{9293 + worker.nr}"
#     server.listen(addr, tries: -1, delay: 5, tcp_nopush: true)
#   end
# Not taken over (line 8): error_log takes a file, not an object; error_log_format json makes objects of its lines
#   logger Logger.new($stdout)
# client_body_buffer_size in Unicorn
body_memory_max 65536
# Not taken over (line 10): not there and not needed: a body is always read before the application is called
#   rewindable_input false

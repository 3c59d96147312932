# Configuration of Oribi, made by `oribi import` from unicorn-classic.rb (Unicorn).
# 11 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# The site behind nginx
app_dir = "/"
# worker_processes in Unicorn
workers 4
user "www-data"
group "www-data"
# working_directory in Unicorn
chdir app_dir
# listen in Unicorn
bind "/tmp/.sock?backlog=64"
# listen in Unicorn; not there and not needed, or the system's: tcp_nopush
bind 8080
# timeout in Unicorn
call_timeout 30
# pid in Unicorn
pid_file "/tmp/unicorn.pid"
# stderr_path in Unicorn
error_log "/tmp/unicorn.stderr.log"
# Not taken over (line 11): access_log takes the requests; what the application prints goes to standard output
#   stdout_path "/tmp/unicorn.stdout.log"
# preload_app in Unicorn
preload true
GC.respond_to?(:copy_on_write_friendly=) and
  GC.copy_on_write_friendly = true
# Not taken over (line 15): not there and not needed: a client that left is noticed while the request waits
#   check_client_connection false

# before_fork in Unicorn, called with server, worker; there is no .oldbin here: HUP and USR2 replace all workers by
# themselves, so what it does with the old server may go
before_fork objects: true do |server, worker|
  before = "#{server.config[:pid]}.oldbin"
  next unless File.exist?(before) && server.pid != before

  begin
    Process.kill(worker.nr + 1 < server.worker_processes ? :TTOU : :QUIT, Integer(File.read(before)))
  rescue Errno::ESRCH
    server.logger.info "gone already"
  end
end

# after_fork in Unicorn, called with server, worker
after_fork objects: true do |server, worker|
  server.logger.info("worker=#{worker.nr} up")
  srand
end

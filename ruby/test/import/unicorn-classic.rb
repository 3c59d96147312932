# The site behind nginx
app_dir = "/"
worker_processes 4
user "www-data", "www-data"
working_directory app_dir
listen "/tmp/.sock", :backlog => 64
listen 8080, :tcp_nopush => true
timeout 30
pid "/tmp/unicorn.pid"
stderr_path "/tmp/unicorn.stderr.log"
stdout_path "/tmp/unicorn.stdout.log"
preload_app true
GC.respond_to?(:copy_on_write_friendly=) and
  GC.copy_on_write_friendly = true
check_client_connection false

before_fork do |server, worker|
  before = "#{server.config[:pid]}.oldbin"
  next unless File.exist?(before) && server.pid != before

  begin
    Process.kill(worker.nr + 1 < server.worker_processes ? :TTOU : :QUIT, Integer(File.read(before)))
  rescue Errno::ESRCH
    server.logger.info "gone already"
  end
end

after_fork do |server, worker|
  server.logger.info("worker=#{worker.nr} up")
  srand
end

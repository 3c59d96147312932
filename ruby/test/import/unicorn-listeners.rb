listen "127.0.0.1:8080"
listen ENV["UNICORN_SOCKET"] if ENV["UNICORN_SOCKET"]
worker_processes 2
after_fork do |server, worker|
  addr = "127.0.0.1:#{9293 + worker.nr}"
  server.listen(addr, tries: -1, delay: 5, tcp_nopush: true)
end
logger Logger.new($stdout)
client_body_buffer_size 65536
rewindable_input false

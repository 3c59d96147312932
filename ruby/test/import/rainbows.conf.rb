Rainbows! do
  use :ThreadPool
  worker_connections 20
  keepalive_timeout 5
end
worker_processes 2
listen 8080, :tcp_nodelay => true
after_fork { |server, worker| GC.disable }
after_fork { |server, worker| worker.user("www-data", "www-data") if Process.euid == 0 }

host '127.0.0.1'
port 9292
max_workers ENV["WEB_CONCURRENCY"] || 10
timeout 60
max_request_per_child 1000
min_request_per_child 800
oobgc true
max_gc_per_request 5
before_fork { puts "forking" }
after_fork { srand }

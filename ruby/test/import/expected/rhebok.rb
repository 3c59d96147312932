# Oribi's configuration, made by `oribi import` from rhebok.rb (Rhebok).
# Settings taken over: 10.
# Look through it, then: oribi --check --config FILE

host '127.0.0.1'
port 9292
# max_workers in Rhebok
workers ENV["WEB_CONCURRENCY"] || 10
timeout 60
# max_request_per_child in Rhebok
requests_max 1000
min_request_per_child 800
# oobgc in Rhebok
oob_gc true
# max_gc_per_request in Rhebok
oob_gc_requests 5
before_fork { puts "forking" }
after_fork { srand }

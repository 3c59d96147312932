# Configuration of Oribi, made by `oribi import` from rhebok.rb (Rhebok).
# 10 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

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

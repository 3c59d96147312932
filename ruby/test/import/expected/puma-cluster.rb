# Configuration of Oribi, made by `oribi import` from puma-cluster.rb (Puma).
# 12 settings taken over, 2 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

workers 2
threads 1, 6
# preload_app! in Puma
preload
# worker_boot_timeout in Puma
boot_timeout 30
# worker_shutdown_timeout in Puma
shutdown_timeout 25
# persistent_timeout in Puma
idle_timeout 20
# first_data_timeout in Puma
head_timeout 15
# Not taken over (line 8): not there and not needed: a request is passed on to a worker that is idle
#   wait_for_less_busy_worker 0.005
# Not taken over (line 9): not there and not needed: the heap is settled before the first fork
#   nakayoshi_fork
# fork_worker in Puma
refork_after 500

# runs once in Puma, and before each worker here
before_fork do
  $before = true
end

# on_worker_boot in Puma, called with index
after_fork do |index|
  ENV["WORKER_INDEX"] = index.to_s
end

# on_worker_shutdown in Puma, called with index
before_worker_exit { |index| puts "bye #{index}" }
# on_booted in Puma
server_ready { puts "up" }

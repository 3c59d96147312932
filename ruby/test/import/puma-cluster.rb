workers 2
threads 1, 6
preload_app!
worker_boot_timeout 30
worker_shutdown_timeout 25
persistent_timeout 20
first_data_timeout 15
wait_for_less_busy_worker 0.005
nakayoshi_fork
fork_worker 500

before_fork do
  $before = true
end

on_worker_boot do |index|
  ENV["WORKER_INDEX"] = index.to_s
end

on_worker_shutdown { |index| puts "bye #{index}" }
on_booted { puts "up" }

=begin
Numbers as agreed with the platform team.
=end
workers ENV.fetch("WEB_CONCURRENCY", "2").to_i
threads 5, 5
bind "tcp://[::]:#{ENV.fetch("PORT", "3000")}"
drain_on_shutdown
force_shutdown_after 20
raise_exception_on_sigterm false
enable_keep_alives false
set_remote_address header: "X-Real-IP"
after_worker_fork { |index| puts index }
__END__
workers 99

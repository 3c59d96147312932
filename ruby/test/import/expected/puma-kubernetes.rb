# Configuration of Oribi, made by `oribi import` from puma-kubernetes.rb (Puma).
# 6 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

=begin
Numbers as agreed with the platform team.
=end
workers ENV.fetch("WEB_CONCURRENCY", "2").to_i
threads 5, 5
bind "tcp://[::]:#{ENV.fetch("PORT", "3000")}"
# Not taken over (line 7): not there and not needed: requests that have come in are answered; drain_delay announces a
# stop
#   drain_on_shutdown
# force_shutdown_after in Puma
shutdown_timeout 20
# Not taken over (line 9): not there and not needed: TERM is a graceful stop with exit code 0
#   raise_exception_on_sigterm false
# enable_keep_alives in Puma
keepalive false
# Not taken over (line 11): trusted_proxies names the proxies whose X-Forwarded-For decides it
#   set_remote_address header: "X-Real-IP"
# after_worker_fork in Puma, called with index
after_fork { |index| puts index }
__END__
workers 99

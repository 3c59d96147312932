# Oribi's configuration, made by `oribi import` from puma-rails8.rb (Puma).
# Settings taken over: 3; left as comments: 2. Look for "Not taken over".
# Look through it, then: oribi --check --config FILE

threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
threads threads_count, threads_count

port ENV.fetch("PORT", 3000)

# Not taken over (line 6): there are none: for tmp_restart there is `ctl reload`, for systemd and solid_queue their
# own services
#   plugin :tmp_restart
# Not taken over (line 7): there are none: for tmp_restart there is `ctl reload`, for systemd and solid_queue their
# own services
#   plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]

# pidfile in Puma
pid_file ENV["PIDFILE"] if ENV["PIDFILE"]

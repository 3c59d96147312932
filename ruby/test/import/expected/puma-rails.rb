# Oribi's configuration, made by `oribi import` from puma-rails.rb (Puma).
# Settings taken over: 5; left as comments: 1. Look for "Not taken over".
# Look through it, then: oribi --check --config FILE

# The file that `rails new` writes.
max_threads_count = ENV.fetch("RAILS_MAX_THREADS") { 5 }
min_threads_count = ENV.fetch("RAILS_MIN_THREADS") { max_threads_count }
threads min_threads_count, max_threads_count

# worker_timeout in Puma
call_timeout 3600 if ENV.fetch("RAILS_ENV", "development") == "development"

port ENV.fetch("PORT") { 3000 }
# environment in Puma
env ENV.fetch("RAILS_ENV") { "development" }
# pidfile in Puma
pid_file ENV.fetch("PIDFILE") { "tmp/pids/server.pid" }

# Allow puma to be restarted by `bin/rails restart` command.
# Not taken over (line 13): there are none: for tmp_restart there is `ctl reload`, for systemd and solid_queue their
# own services
#   plugin :tmp_restart

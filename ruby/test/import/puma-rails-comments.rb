# frozen_string_literal: true
# This configuration file will be evaluated by Puma. The top-level methods that
# are invoked here are part of Puma's configuration DSL. For more information
# about methods provided by the DSL, see https://puma.io/puma/Puma/DSL.html.
#
# Puma starts a configurable number of processes (workers) and each process
# serves each request in a thread from an internal thread pool.
#
# Three threads: the report of the accounts needs its memory for itself.
#
# Any libraries that use a connection pool should be configured to provide at
# least as many connections as the number of threads.
threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
threads threads_count, threads_count

# Specifies the `port` that Puma will listen on to receive requests; default is 3000.
#
port ENV.fetch("PORT", 3000) # the balancer asks here, as PUMA before

# config/puma.rb was three files; puma-metrics went with them. We came from Unicorn.
workers 2

# Use the `preload_app!` method when specifying a `workers` number.
# This directive tells Puma to first boot the application and load code
# before forking the application.
#
# preload_app!

# Allow puma to be restarted by `bin/rails restart` command.
plugin :tmp_restart

if ENV["PIDFILE"]
  # PUMA writes it
  # Only deployments set it.
  pidfile ENV["PIDFILE"]
end

before_fork do
  # as Puma's guide says
  text = <<~TEXT
    # Puma stays in a text
  TEXT
  warn text
end

# The end, which names nobody.

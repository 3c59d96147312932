# Configuration of Oribi, made by `oribi import` from puma-rails-comments.rb (Puma).
# 6 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# frozen_string_literal: true
# Three threads: the report of the accounts needs its memory for itself.
#
# Any libraries that use a connection pool should be configured to provide at
# least as many connections as the number of threads.
threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
threads threads_count, threads_count

port ENV.fetch("PORT", 3000) # the balancer asks here, as PUMA before

# config/puma.rb was three files; puma-metrics went with them. We came from Unicorn.
workers 2

# preload_app!

# plugin in Puma; a touch of tmp/restart.txt is a reload, as by bin/rails restart
restart_file "tmp/restart.txt"

if ENV["PIDFILE"]
  # pidfile in Puma
  pid_file ENV["PIDFILE"]
end

# runs once in Puma, and before each worker here
before_fork do
  # as Puma's guide says
  text = <<~TEXT
    # Puma stays in a text
  TEXT
  warn text
end

# The end, which names nobody.

# Left out: 6 comments about Puma (lines 2, 6, 16, 23, 29, 33).

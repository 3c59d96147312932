# Configuration of Oribi, made by `oribi import` from puma-rails.rb (Puma).
# 6 settings taken over.
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

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

# `bin/rails restart` touches a file
# plugin in Puma; a touch of tmp/restart.txt is a reload, as by bin/rails restart
restart_file "tmp/restart.txt"

# What Puma does unless told otherwise:
workers 1 unless ENV["WEB_CONCURRENCY"]

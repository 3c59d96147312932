# Configuration of Oribi, made by `oribi import` from puma-rails8.rb (Puma).
# 4 settings taken over, 1 left as a comment: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

threads_count = ENV.fetch("RAILS_MAX_THREADS", 3)
threads threads_count, threads_count

port ENV.fetch("PORT", 3000)

# plugin in Puma; a touch of tmp/restart.txt is a reload, as by bin/rails restart
restart_file "tmp/restart.txt"
# Not taken over (line 7): give it a process of its own, as in a line of the Procfile: jobs: bin/jobs
#   plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]

# pidfile in Puma
pid_file ENV["PIDFILE"] if ENV["PIDFILE"]

# What Puma does unless told otherwise:
workers 1 unless ENV["WEB_CONCURRENCY"]

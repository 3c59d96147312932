# Configuration of Oribi, made by `oribi import` from puma-tls.rb (Puma).
# 2 settings taken over, 3 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# Not taken over (line 1): bind tls://host:port?certificate=FILE&key=FILE
#   ssl_bind '127.0.0.1', '9292', {
#     key: '/etc/ssl/app.key',
#     cert: '/etc/ssl/app.pem',
#     verify_mode: 'none'
#   }
# Not taken over (line 6): address "ssl://127.0.0.1:9293?key=k&cert=c" asks for TLS: say tls://host:port, and where
# the certificate is
#   bind 'ssl://127.0.0.1:9293?key=k&cert=c'
bind 'tcp://127.0.0.1:9294'
# quiet in Puma; quiet is about warnings here; in Puma it is about requests
access_log "off"
# Not taken over (line 9): not there: process titles name the program, its generation and the worker
#   tag 'board'

# What Puma does unless told otherwise:
workers 1 unless ENV["WEB_CONCURRENCY"]
threads 5 unless ENV["RAILS_MAX_THREADS"]

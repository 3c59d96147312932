# Configuration of Oribi, made by `oribi import` from settings/thin-socket.yml (Thin).
# 7 settings taken over, 5 left as comments: look for "Not taken over".
# Keep it as config/oribi.rb, which oribi reads by itself, and try it: oribi check

# user: "www-data"
user "www-data"
# group: "www-data"
group "www-data"
# socket: "/tmp/thin.sock"
socket "/tmp/thin.sock"
# Not taken over: a socket takes the place of the port
#   port: 3000
# environment: "<%= ENV[\"RACK_ENV\"] || \"production\" %>"
env ENV["RACK_ENV"] || "production"
# servers: "<%= ENV.fetch(\"THIN_SERVERS\", 2) %>"; all on one address; in Thin each has its own
workers ENV.fetch("THIN_SERVERS", 2)
# Not taken over: what stands between <% and %> is not the whole value: write it as Ruby
#   tag: "shop-<%= 3 %>"
# Not taken over: threads N are calls at a time in one worker
#   threaded: true
# threadpool_size: 20
threads 20
# Not taken over: not there and not needed: epoll is used
#   no-epoll: true
# require: ["json", "set"]
require "json"
require "set"
# Not taken over: the flag is off, which is so by itself
#   ssl: false

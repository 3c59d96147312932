# Agoo started from a config.ru: each worker calls the application in its main thread, as its handler for rackup does;
# nothing logged.
require "agoo"
require "rack"
require "rack/builder"

listen = ENV.fetch("BENCH_LISTEN")
app = Rack::Builder.parse_file(ENV.fetch("BENCH_APP"))
Agoo::Log.configure(dir: "", console: false, classic: true, colorize: false,
                    states: { INFO: false, DEBUG: false, connect: false, request: false, response: false, eval: false, push: false })
Agoo::Server.init(0, "/nonexistent", bind: [listen.start_with?("/") ? "unix://#{listen}" : "http://#{listen}"],
                  thread_count: 0, worker_count: Integer(ENV.fetch("BENCH_WORKERS")))
# The last is for GET, the others have no such catch-all.
%i[POST PUT DELETE].each { |verb| Agoo::Server.handle(verb, "/**", app) }
Agoo::Server.handle_not_found(app)
Agoo::Server.start

# Agoo started from a config.ru: one thread that calls the application in each worker, nothing logged.
require "agoo"
require "rack"
require "rack/builder"

listen = ENV.fetch("BENCH_LISTEN")
app = Rack::Builder.parse_file(ENV.fetch("BENCH_APP"))
Agoo::Log.configure(dir: "", console: false, classic: true, colorize: false,
                    states: { INFO: false, DEBUG: false, connect: false, request: false, response: false, eval: false, push: false })
Agoo::Server.init(0, "/nonexistent", bind: [listen.start_with?("/") ? "unix://#{listen}" : "http://#{listen}"],
                  thread_count: 1, worker_count: Integer(ENV.fetch("BENCH_WORKERS")))
Agoo::Server.handle_not_found(app)
Agoo::Server.start

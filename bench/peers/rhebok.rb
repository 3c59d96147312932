# Rhebok through its Rack handler, workers that are never recycled. Its handler was made for rack 2, whose name it asks
# for; it runs on rack 3 too.
require "rack"
require "rack/builder"
require "rack/handler/rhebok"

listen = ENV.fetch("BENCH_LISTEN")
place = listen.start_with?("/") ? { Path: listen } : { Host: listen[/\A(.*):/, 1], Port: listen[/\d+\z/] }
Rack::Handler::Rhebok.run(Rack::Builder.parse_file(ENV.fetch("BENCH_APP")),
                          { MaxWorkers: ENV.fetch("BENCH_WORKERS"), MaxRequestPerChild: "1000000000", OobGC: false, **place })

# frozen_string_literal: true

# Answers which loading of the application this is.
LOADED = "#{Process.pid}-#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}".freeze

run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => LOADED.bytesize.to_s }, [LOADED]] }

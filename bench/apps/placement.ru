# frozen_string_literal: true

# /sleep/MS: calls of a length that the load driver has drawn; placement.psgi is its twin. The answer says how long the
# call really was.
run lambda { |env|
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
  sleep(env["PATH_INFO"].delete_prefix("/sleep/").to_f / 1000)
  took_us = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond) - started
  [200, { "content-type" => "text/plain", "content-length" => "4", "x-service-us" => took_us.to_s }, ["done"]]
}

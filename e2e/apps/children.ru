# frozen_string_literal: true

# Forks at every place where the server runs code of the application, and the child comes back from there. children.psgi
# is its twin.
module Forks
  NOTES = File.join(ENV.fetch("E2E_DIR"), "forks")
  OPENED = []

  def self.note(*words) = File.write(NOTES, "#{words.join(" ")}\n", mode: "a")

  # The child does not end by itself, and opens files, which get the numbers of the server's sockets.
  def self.split(where)
    child = fork
    return Process.detach(child) if child

    OPENED.concat(Array.new(16) { |i| File.new("#{NOTES}.#{Process.pid}.#{i}", "w") })
    note("child", where, Process.pid)
  end
end

# Programs end so.
at_exit { Forks.note("end", Process.pid, Forks::OPENED.sum(&:size), $!.inspect) if Forks::OPENED.any? }

class Body
  def initialize(where) = @where = where

  def each
    yield "one "
    Forks.split("each") if @where == "each"
    raise "child" if @where == "raise" && Forks.split("raise") && Forks::OPENED.any?
    yield "two"
  end

  def close
    Forks.split("close") if @where == "close"
    Forks.note("closed", Process.pid)
  end
end

run lambda { |env|
  where = env["PATH_INFO"][1..]
  trap(:URG) { Forks.split("trap") unless Forks::OPENED.any? }
  next [200, {}, [Process.pid.to_s]] if where == "pid"

  env["rack.response_finished"] << ->(*) { Forks.note("finished", Process.pid) }
  env["rack.response_finished"] << ->(*) { Forks.split("after") if where == "after" }
  Forks.split("call") if where == "call"
  body =
    case where
    when "call", "after" then ["one two"]
    when "stream" then ->(stream) { [stream.write("one "), Forks.split("stream"), stream.write("two")] }
    else Body.new(where)
    end
  [200, { "content-type" => "text/plain" }, body]
}

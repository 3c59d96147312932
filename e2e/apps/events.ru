# frozen_string_literal: true

# Event streams for events_test.rb; POST publishes.
refused = lambda do |env|
  env["oribi.events"].stream(channels: env["QUERY_STRING"] == "none" ? [] : ["with\ncontrols"])
end

# As middleware may do it: another body, and headers that describe it.
class Wrapped
  def initialize(body) = @body = body
  def each(&) = @body.each(&)
  def close = File.write("#{ENV.fetch("E2E_DIR")}/closed", "")
end

run(lambda do |env|
  path = env["PATH_INFO"]
  names = env["QUERY_STRING"].split("&")
  return [200, {}, [Process.pid.to_s]] if path == "/pid"
  return [200, { "content-type" => "text/plain" }, ["Hello, World!"]] if path == "/"

  if path == "/publish"
    channel, event = names
    data = env["rack.input"].read
    data = data.dup.force_encoding(Encoding::UTF_8) unless event == "binary"
    Oribi.publish(channel, data, event: event == "binary" ? nil : event)
    return [204, {}, []]
  end
  events = env["oribi.events"] or return [406, { "content-type" => "text/plain" }, ["no event stream is asked for\n"]]
  case path
  when "/last" then [200, { "content-type" => "text/plain" }, [events.last_event_id.inspect]]
  when "/refused" then refused.call(env)
  when "/forbidden" then [403, {}, ["refused\n"]]
  when "/since" then events.stream(channels: [names[0]], since: names[1].to_s)
  when "/retry" then events.stream(channels: names, retry: 1234, headers: { "x-room" => "7", "cache-control" => "no-store" })
  when "/wrapped"
    status, headers, body = events.stream(channels: names)
    [status, headers.merge("content-encoding" => "gzip", "etag" => "x"), Wrapped.new(body)]
  when "/forged" then [200, { "oribi-events" => "- - #{names[0]}" }, []]
  when "/again" then events.stream(channels: names).tap { (refused.call(env) rescue next) }
  when "/dies" then events.stream(channels: names).then { raise "said to die" }
  else events.stream(channels: names)
  end
end)

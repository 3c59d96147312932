# frozen_string_literal: true

# Iodine's WebSockets for bench/workloads/sockets.rb: echo, and a channel that POST publishes to.
module Echo
  def self.on_message(client, data) = client.write(data)
end

module Subscribed
  def self.on_open(client) = client.subscribe(:a)
  def self.on_message(client, data) = client.write(data)
end

hello = [200, { "content-type" => "text/plain" }.freeze, ["Hello, World!"].freeze].freeze

run(lambda do |env|
  if env["rack.upgrade?"] == :websocket
    env["rack.upgrade"] = env["PATH_INFO"] == "/echo" ? Echo : Subscribed
    return [101, {}, []]
  end
  return hello unless env["REQUEST_METHOD"] == "POST"

  Iodine.publish("a", env["rack.input"].read.force_encoding(Encoding::UTF_8))
  [204, {}, []]
end)

# frozen_string_literal: true

# Action Cable without Rails for bench/workloads/sockets.rb: the channel Echo.
require "concurrent"
require "action_cable"
require "logger"

class Connection < ActionCable::Connection::Base
end

class Echo < ActionCable::Channel::Base
  def echo(data) = transmit({ "text" => data["text"] })
end

ActionCable.server.config.tap do |config|
  config.cable = { "adapter" => "async" }
  config.connection_class = -> { Connection }
  config.disable_request_forgery_protection = true
  config.logger = Logger.new(nil)
end

hello = [200, { "content-type" => "text/plain" }.freeze, ["Hello, World!"].freeze].freeze

run(->(env) { env["PATH_INFO"] == "/echo" ? ActionCable.server.call(env) : hello })

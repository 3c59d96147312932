# frozen_string_literal: true

# Action Cable for bench/workloads/sockets.rb: a channel that sends back what it gets.
gem "railties", ">= 7.0"
require "rails"
require "action_controller/railtie"
require "action_cable/engine"

# The smallest application that Action Cable takes.
class Application < Rails::Application
  config.load_defaults 7.0
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.hosts.clear
  config.logger = Logger.new(File::NULL)
  config.action_cable.disable_request_forgery_protection = true
  config.action_cable.cable = { "adapter" => "async" }
  config.action_cable.mount_path = "/echo"
end

module ApplicationCable
  class Connection < ActionCable::Connection::Base
  end
end

class Echo < ActionCable::Channel::Base
  def receive(data) = transmit(data)
end

Rails.application.initialize!
run Rails.application

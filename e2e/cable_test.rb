# frozen_string_literal: true

require_relative "support"
require_relative "support/web_socket"

CABLE_FILES = {
  "config.ru" => <<~RUBY,
    require_relative "config/environment"
    run Rails.application
  RUBY
  "config/cable.yml" => "development:\n  adapter: async\n",
  "config/environment.rb" => <<~RUBY,
    gem "railties", ">= 7.0"
    require "rails"
    require "action_controller/railtie"
    require "action_cable/engine"

    class Chat < Rails::Application
      config.load_defaults 7.0
      config.eager_load = true
      config.secret_key_base = "0" * 64
      config.hosts.clear
      config.logger = Logger.new($stderr, level: :warn)
      config.cache_store = :memory_store
      config.action_cable.disable_request_forgery_protection = true
    end

    module ApplicationCable
      class Connection < ActionCable::Connection::Base
      end
    end

    class RoomChannel < ActionCable::Channel::Base
      def subscribed = stream_from("room")
    end

    class RoomsController < ActionController::Base
      def say
        ActionCable.server.broadcast("room", { text: params[:text] })
        render(plain: "said")
      end

      def count = render(plain: Rails.cache.write("count", Rails.cache.read("count").to_i + 1) && Rails.cache.read("count").to_s)

      def inner = render(plain: "and " + Net::HTTP.get(URI("http://127.0.0.1:\#{params[:port]}/say?text=inner")))
    end

    Rails.application.initialize!
    Rails.application.routes.draw do
      %w[say count inner].each { |name| get "/\#{name}", to: "rooms#\#{name}" }
    end
  RUBY
}.freeze

# What Rails keeps in memory, with the defaults of development. Rack only.
if E2E::RUBY
  E2E.suite("cable", transports: %i[tcp]) do
    def setup
      super
      gem "actioncable", ">= 7.0"
      @app = Dir.mktmpdir("oribi-cable")
      CABLE_FILES.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(@app, path)))
        File.write(File.join(@app, path), text)
      end
    rescue Gem::LoadError => e
      skip "no Action Cable here: #{e.message}"
    end

    def teardown
      super
      FileUtils.remove_entry(@app) if @app
    end

    def serve
      one = E2E::Server.new(argv: [E2E::Server.binary, "--bind", "127.0.0.1:%{port}", "--access-log", "off"],
                            env: { "E2E_CHDIR" => @app, "RUBYOPT" => "-rnet/http" })
      @servers << one
      one.start
    end

    def subscribed(server)
      socket = E2E::WebSocketClient.new(connect(server), "/cable")
      socket.say(JSON.generate(command: "subscribe", identifier: JSON.generate(channel: "RoomChannel")))
      nil until JSON.parse(socket.next_message)["type"] == "confirm_subscription"
      socket
    end

    # What is not a ping, which come every three seconds.
    def heard(socket)
      5.times do
        message = JSON.parse(socket.next_message)["message"]
        return message["text"] if message.is_a?(Hash)
      end
      "nothing but pings"
    end

    def test_the_async_adapter_reaches_every_client
      one = serve
      sockets = Array.new(5) { subscribed(one) }
      6.times do |number|
        assert_equal "said", one.get("/say?text=#{number}").body
        assert_equal [number.to_s] * 5, sockets.map { |socket| heard(socket) }
      end
    end

    def test_a_memory_store_counts_once
      one = serve
      assert_equal (1..12).map(&:to_s), Array.new(12) { one.get("/count").body }
    end

    def test_an_application_that_calls_itself = serve.then { |one| assert_equal "and said", one.get("/inner?port=#{one.port}").body, one.stderr }
  end
end

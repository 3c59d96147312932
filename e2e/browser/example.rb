# frozen_string_literal: true

require_relative "../support"
require_relative "webdriver"

module E2E
  # A test of an example in a real browser: two workers, and a folder for what the example keeps.
  module BrowserExample
    # @param name [String] of the folder in examples, its Perl twin has -psgi behind it
    # @param variable [String] of the environment, that tells the example its file
    # @param env [Hash] more of the environment
    def serve_example(name, variable, file, env = {})
      skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
      app = RUBY ? "examples/#{name}/config.ru" : "examples/#{name}-psgi/app.psgi"
      @dir = Dir.mktmpdir("oribi-#{name}")
      @server = Server.new(options: ["--workers", "2"], app: app, env: { variable => "#{@dir}/#{file}", **env }).start
      @home = "http://127.0.0.1:#{@server.port}/"
    end

    def teardown
      @server&.cleanup
      FileUtils.remove_entry(@dir) if @dir
    end
  end
end

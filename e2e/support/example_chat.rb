# frozen_string_literal: true

require "open3"
require_relative "frontends"

# The chat of the examples, started in its folder and with its own settings, at a port of its own.
module ExampleChat
  FOLDER = File.join(E2E::ROOT, E2E::RUBY ? "examples/chat" : "examples/chat-psgi")

  def serve_chat(*options)
    skip "no oribi-frontend here: it needs libssl-dev, libnghttp2-dev and pkg-config" unless FrontendServers.here?
    @dir = Dir.mktmpdir("oribi-chat")
    argv = [E2E::Server.binary, "--bind", FrontendServers::PLAIN_ADDRESS, "--no-dev", "--control", "#{@dir}/control", *options]
    @one = E2E::Server.new(argv: argv, env: { "E2E_CHDIR" => FOLDER }).start
  end

  def end_chat
    @one&.cleanup
    FileUtils.remove_entry(@dir) if @dir
  end

  def ctl(*words) = Open3.capture2e(E2E::Server.binary, "ctl", "--control", "#{@dir}/control", *words)
end

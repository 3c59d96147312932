# frozen_string_literal: true

# The chat of the examples for browser/chat_test.rb: a call waits while the file "hold" is there, and writes its pid.
require_relative "../../examples/chat/lib/room"

module Held
  DIR = ENV.fetch("E2E_DIR")

  def on_message(ws, data)
    File.write("#{DIR}/held", Process.pid.to_s) if File.exist?("#{DIR}/hold")
    sleep(0.005) while File.exist?("#{DIR}/hold")
    super
  end
end

Chat::Room.singleton_class.prepend(Held)
run Chat::Room

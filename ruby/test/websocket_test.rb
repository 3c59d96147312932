# frozen_string_literal: true

require "support"
require "tmpdir"

# Oribi::WebSocket without a server: which handlers are taken, by name, and texts that JSON can hold. What needs a
# frontend is in e2e/websocket_test.rb.
class WebSocketTest < BindingTest
  Handlers = Oribi::WebSocket::Handlers

  module Messages
    def self.on_message(socket, data) = nil
  end

  class All
    def self.on_open(socket) = nil
    def self.on_message(socket, data) = nil
    def self.on_close(socket, code, reason) = nil
  end

  def refusal(handler) = assert_raises(Oribi::Error) { Handlers.name_of(handler) }.message

  def test_names
    assert_equal "WebSocketTest::Messages", Handlers.name_of(Messages)
    assert_equal [0, 3], [Messages, All].map { |handler| Handlers.wants(handler) }
    assert_same All, Handlers.find("WebSocketTest::All")
    assert_nil Handlers.find("WebSocketTest::Gone")
    assert_nil Handlers.find("RUBY_VERSION")
    assert_nil Handlers.find("not a name")
  end

  def test_handlers_that_are_none
    assert_match(/is an object \(WebSocketTest::All\): no object lives between two messages/, refusal(All.new))
    assert_match(/has no name/, refusal(Class.new { def self.on_message(*) = nil }))
    assert_match(/Comparable has none of on_open, on_message, on_close/, refusal(Comparable))
    renamed = Class.new { def self.on_message(*) = nil }
    self.class.const_set(:Renamed, renamed)
    self.class.send(:remove_const, :Renamed)
    assert_match(/is not the constant of that name/, refusal(renamed))
  end

  # Else it would seem to be gone.
  def test_a_handler_whose_file_fails
    Dir.mktmpdir do |dir|
      { Unknown: "NOWHERE", NoMethod: "nil.nowhere" }.each do |name, code|
        File.write("#{dir}/#{name}.rb", "class WebSocketTest; #{code}; end")
        self.class.autoload(name, "#{dir}/#{name}.rb")
        assert_match(/NOWHERE|nowhere/, assert_raises(NameError) { Handlers.find("WebSocketTest::#{name}") }.message)
      end
    end
  end

  def test_values_of_an_environment_are_text
    assert_equal ["\u00fc", "\u00fc", "a"], ["\xc3\xbc".b, "\xfc".b, "a"].map { |bytes| Oribi::WebSocket.text(bytes) }
  end

  def test_outside_of_a_call
    socket = Oribi::WebSocket.new
    assert_equal ["", nil, {}, {}], [socket.id, socket.protocol, socket.state, socket.env]
    ["text", "bytes".b, :symbol, 1].each { |data| assert_match(/the call has ended/, assert_raises(Oribi::Error) { socket.send(data) }.message) }
    assert_match(/not valid UTF-8/, assert_raises(Oribi::Error) { Oribi::WebSocket.utf8("\xff") }.message)
    assert_raises(Oribi::Error) { socket.write("text") }
    assert_raises(Oribi::Error) { socket.close }
    assert_raises(Oribi::Error) { socket.publish("room", "text") }
    assert_raises(TypeError) { socket.subscribe("room", since: Class.new { def to_s = 5 }.new) }
  end

  def test_a_copy_has_what_the_socket_has
    socket = Oribi::WebSocket.new
    socket.state["n"] = 1
    copy = socket.dup
    assert_same socket.state, copy.state
    assert_equal "", copy.id
    copy.state = { "n" => 2 }
    assert_equal({ "n" => 1 }, socket.state)
    assert_raises(FrozenError) { socket.freeze.state = {} }
    assert_raises(FrozenError) { socket.__send__(:initialize_copy, copy) }
  end
end

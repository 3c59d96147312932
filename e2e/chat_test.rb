# frozen_string_literal: true

require_relative "support"
require_relative "support/event_client"
require_relative "support/example_chat"
require_relative "support/socket_client"
require "json"

# The chat of the examples without its pages, which browser/chat_test.rb has.
E2E.suite("chat", transports: %i[tcp]) do
  include ExampleChat

  def setup
    super
    @open = []
    serve_chat
  end

  def teardown
    @open.each(&:close)
    end_chat
    super
  end

  def socket(query = "", room: "lobby") = E2E::SocketClient.new(@one.port, "/rooms/#{room}?#{query}").tap { |one| @open << one }
  def say(one, nick, text, key: "k#{text}") = one.say(JSON.generate(key: key, nick: nick, text: text))

  # The next message of the room: [nick, text, id].
  def heard(one)
    around = JSON.parse(one.message)
    around = JSON.parse(one.message) unless around["data"]
    [*JSON.parse(around["data"]).values_at("nick", "text"), around["id"]]
  end

  def test_a_room
    ann, bob, other = socket, socket, socket(room: "kitchen")
    reader = E2E::EventClient.new(@one.port, "/rooms/lobby").tap { |one| @open << one }
    reader.await { |one| one.retry_ms == 1000 }
    assert_equal [nil], [ann, bob, other].map { |one| JSON.parse(one.message)["data"] }.uniq, "the position of each"
    say(ann, " Ann ", "<b>hello</b> \u00fc")
    assert_equal [["Ann", "<b>hello</b> \u00fc"]], [ann, bob].map { |one| heard(one).first(2) }.uniq
    assert_equal %w[Ann <b>hello</b>\ ü], JSON.parse(reader.data).values_at("nick", "text")
    say(bob, "Bob", "x" * 600)
    assert_equal ["Bob", "x" * 500], heard(ann).first(2)
    say(other, "Eve", "alone")
    assert_equal %w[Eve alone], heard(other).first(2)
  end

  def test_a_client_comes_back_for_what_it_has_missed
    ann, bob = socket, socket
    say(ann, "Ann", "one")
    *, id = heard(bob)
    bob.close
    %w[two three].each { |text| say(ann, "Ann", text) }
    3.times { heard(ann) }
    bob = socket("since=#{id}")
    assert_equal %w[two three], [heard(bob)[1], heard(bob)[1]]
    assert JSON.parse(socket("since=1-1").message)["reset"]
  end

  def test_what_is_no_message
    empty = ['{"key":"1","nick":"","text":"x"}', '{"key":"1","nick":"x","text":" "}', '{"key":"1","nick":{},"text":[]}']
    ["", "[]", "{", "{}", *empty, "\xff\x00".b].each do |bytes|
      one = socket
      one.say(bytes)
      assert_equal [4000, "not a message"], one.read_close, bytes.inspect
    end
    refute_match(/error/, @one.stderr)
  end

  def test_requests
    assert_equal [200, "default-src 'self'"], @one.get("/").then { |answer| [answer.status, answer["content-security-policy"]] }
    assert_includes @one.get("/").body, "chat.js"
    assert_equal 426, @one.get("/rooms/lobby").status
    assert_equal [404, 404], ["/nothing", "/rooms/a%2fb"].map { |path| @one.get(path).status }
  end
end

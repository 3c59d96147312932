# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"
require_relative "support/stranger"
require "uri"

# WebSockets and event streams of a frontend with the clients that others have written: over TCP and TLS, and over
# HTTP/2 where a client speaks it. What a client cannot do (fragments, Pings of its own, a status of a refusal) is not
# in its list.
E2E.suite("socket_clients", transports: %i[tcp]) do
  include FrontendServers

  ALL = %i[fragments ping status cut].freeze
  SOCKETS = {
    "ws" => [%w[node ws.js], ALL, %w[node -e require("ws")]],
    "undici" => [%w[node undici.js], [], %w[node -e require("undici")]],
    "faye-websocket" => [%w[ruby faye.rb], %i[ping status], %w[ruby -rfaye/websocket -e1]],
    "async-websocket" => [%w[ruby async.rb http/1.1], %i[status], %w[ruby -rasync/websocket -e1]],
    "async-websocket over HTTP/2" => [%w[ruby async.rb h2], %i[status h2], %w[ruby -rasync/websocket -e1]],
    "Mojo::UserAgent" => [%w[perl mojo.pl], %i[fragments ping status], %w[perl -MMojo::UserAgent -MIO::Socket::SSL -e1]],
    "AnyEvent::WebSocket::Client" => [%w[perl anyevent.pl], [], %w[perl -MAnyEvent::WebSocket::Client -MNet::SSLeay -e1]],
    "websockets" => [%w[/usr/bin/python3 client_websockets.py], ALL, ["/usr/bin/python3", "-c", "import websockets"]],
    "aiohttp" => [%w[/usr/bin/python3 client_aiohttp.py], %i[status], ["/usr/bin/python3", "-c", "import aiohttp"]],
  }.freeze
  SOURCES = { "eventsource" => %w[node events.js eventsource], "undici" => %w[node events.js undici] }.freeze

  def setup
    super
    @secure = E2E.free_port
  end

  def begin_server(*options)
    serve("--workers", "2", "--history", "h:,1000,300s", "--bind", bind.sub("%{port}", @secure.to_s), *options,
          address: FrontendServers::PLAIN_ADDRESS, app: "e2e/apps/strangers.#{E2E::RUBY ? "ru" : "psgi"}")
  end

  def stranger(argv) = hold(E2E::Stranger.new(*argv, authority: "#{@dir}/site.pem"))

  def each_way(name)
    argv, can, check = SOCKETS.fetch(name)
    skip "no #{name} here (script/setup e2e)" unless system({ "NODE_PATH" => E2E::Stranger::MODULES }, *check, out: File::NULL, err: File::NULL)
    begin_server
    one = stranger(argv)
    ["ws://localhost:#{@one.port}", "wss://localhost:#{@secure}"].each { |base| yield one, base, can unless can.include?(:h2) && base.start_with?("ws:") }
  end

  def publish(data, channel: "h:1", event: nil)
    curl("/publish?#{URI.encode_www_form({ channel: channel, data: data, event: event }.compact)}", scheme: "http")
  end

  def closed_lines = File.exist?("#{@one.dir}/closed") ? File.readlines("#{@one.dir}/closed", chomp: true) : []

  SOCKETS.each_key do |name|
    word = name.downcase.gsub(/\W+/, "_")

    define_method("test_#{word}") do
      each_way(name) do |one, base, can|
        messages(one, base, can)
        ends(one, base, can)
      end
      wait_until("on_close: #{closed_lines}") { closed_lines.any? { |line| line.end_with?(" 4001 bye") } }
    end
  end

  def messages(one, base, can)
    assert_equal %w[open chat], one.ask("open", "#{base}/chat", %w[chat other])
    ["hello \u{1F600} \u00fc", "", "x" * 126, "y" * 70_000, "z\u00e9" * 300_000].each { |text| assert_equal ["text", text], one.ask("text", text) }
    ["", (0..255).to_a.pack("C*"), Random.new(1).bytes(1 << 20)].each do |bytes|
      assert_equal ["binary", [bytes].pack("m0")], one.ask("binary", [bytes].pack("m0"))
    end
    assert_equal ["text", "one two three"], one.ask("fragments", ["one ", "two ", "three"]) if can.include?(:fragments)
    assert_equal %w[pong here], one.ask("ping", "here") if can.include?(:ping)
    100.times { |i| one.command("text", i.to_s) }
    assert_equal (0...100).map { |i| ["text", i.to_s] }, Array.new(100) { one.event }
    assert_equal ["closed", 4001], one.ask("close", 4001, "bye").first(2)
  end

  def ends(one, base, can)
    ends = { "close 4321" => [4321, "as you wish"], "close 1000" => [1000], "die" => [1011], "x" * ((1 << 20) + 1) => [1009] }
    ends.delete(ends.keys.last) if can.include?(:h2) # its library waits for a window, which a stream that was reset never gets
    ends.each do |text, wanted|
      assert_equal %w[open chat], one.ask("open", "#{base}/chat", %w[other chat])
      assert_equal ["closed", *wanted], one.ask("text", text).first(1 + wanted.size), text[0, 10]
    end
    assert_equal ["refused", can.include?(:status) ? 403 : nil], one.ask("open", "#{base}/elsewhere", [])
  end

  # --- many of them at a time ---

  def open_all(protocols = [])
    SOCKETS.filter_map do |name, (argv, abilities)|
      one = stranger(argv)
      base = abilities.include?(:h2) ? "wss://localhost:#{@secure}" : "ws://localhost:#{@one.port}"
      one.command("open", yield(base), protocols)
      [name, one]
    end.each { |name, one| assert_equal "open", one.event.first, name }
  end

  # Clients answer Pings by themselves; a raw client has counted them.
  def test_pings_reloads_and_the_stop
    begin_server("--websocket-ping", "1s")
    clients = open_all(%w[chat]) { |base| "#{base}/chat" }
    raw = hold(E2E::SocketClient.new(@one.port, "/chat", fields: { "Sec-WebSocket-Protocol" => "chat" }))
    4.times { assert_equal E2E::SocketClient::PING, raw.tap(&:ignore_pings).frame.first.tap { raw.write(E2E::SocketClient.frame("", opcode: 10)) } }
    assert ctl("reload").last.success?
    clients.each { |name, one| assert_equal ["text", name], one.ask("text", name) }
    @one.signal(:TERM)
    clients.each do |name, one|
      codes = name.include?("HTTP/2") ? [1001, 1006] : [1001] # its library ends all streams at a GOAWAY
      assert_includes codes, one.event[1], name
    end
  end

  # Those that come back by themselves have ids of all they have got; what they have missed comes once, before the rest.
  def test_channels_with_resume
    begin_server
    clients = open_all { |base| "#{base}/chat?channel=h:1" }
    since = clients.to_h { |name, one| [name, told(one)["id"]] }
    publish("one")
    clients.each { |name, one| since[name] = told(one).then { |message| assert_equal("one", message["data"]).then { message["id"] } } }
    clients.each { |_, one| one.kill }
    publish("missed")
    again = open_all { |base| "#{base}/chat?channel=h:1&since=#{since.values.first}" }
    publish("two")
    again.each { |name, one| assert_equal ["missed", nil, "two"], Array.new(3) { told(one)["data"] }, name }
  end

  def told(one) = one.event.then { |kind, text| assert_equal("text", kind).then { JSON.parse(text) } }

  # --- event streams ---

  SOURCES.each do |name, argv|
    define_method("test_events_of_#{name}") do
      begin_server
      ones = ["http://localhost:#{@one.port}", "https://localhost:#{@secure}"].map do |base|
        stranger(argv).tap { |one| assert_equal ["open"], one.ask("open", "#{base}/events?channel=h:1") }
      end
      publish("hello \u{1F600}\nsecond line")
      publish("named", event: "note")
      ones.each do |one|
        type, data, id = one.event.drop(1)
        assert_equal ["message", "hello \u{1F600}\nsecond line"], [type, data]
        refute_empty id
        assert_equal %w[event note named], one.event.first(3)
      end
      ctl("upgrade") # ends the streams: they come back with Last-Event-ID
      publisher = Thread.new { 40.times { |i| publish(i.to_s) } }
      ones.each { |one| assert_equal (0...40).map(&:to_s), Array.new(40) { event_of(one)[2] } }
      publisher.join
      frontends = E2E::Processes.writing_to("#{@one.dir}/stderr").select { |pid| FrontendServers.frontend?(pid) }
      frontends.each { |pid| E2E::Processes.kill(pid) }
      ones.each { |one| assert_equal %w[event oribi.reset h:1], event_of(one).first(3) }
    ensure
      ctl("stop")
    end
  end

  # Ends and begins of streams come between.
  def event_of(one)
    event = one.event until event&.first == "event"
    event
  end
end

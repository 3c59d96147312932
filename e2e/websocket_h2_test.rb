# frozen_string_literal: true

# WebSockets over HTTP/2 (RFC 8441): all of websocket_test.rb with another client, and what streams alone have.
ENV["E2E_SOCKETS"] = "h2"
require_relative "websocket_test"

E2E.suite("websocket_h2", transports: %i[tcp]) do
  include FrontendServers

  CLIENT = E2E::H2SocketClient
  ADDRESSES = [FrontendServers::PLAIN_ADDRESS, nil].freeze

  def setup
    super
    skip "no python3-h2 here" unless CLIENT.here?
  end

  def begin_server(*options, address: bind, workers: 2, app: "e2e/apps/websocket.#{E2E::RUBY ? "ru" : "psgi"}")
    address ||= bind
    serve("--workers", workers.to_s, "--status", "#{@dir}/status", *options, address: address, app: app)
    @tls = address.start_with?("tls:")
  end

  def together(count, path = "/chat", **how) = CLIENT.together(count, @one.port, path, tls: @tls, **how).each { |one| hold(one) }

  def test_sockets_of_one_connection
    ADDRESSES.each do |address|
      begin_server(address: address)
      sockets = together(20)
      5.times do |i|
        sockets.each { |one| one.say("count") }
        assert_equal [(i + 1).to_s], sockets.map(&:message).uniq
      end
      assert_equal 20, metric('oribi_frontend_connections_open{protocol="websocket"}')
      assert_equal 1, metric('oribi_frontend_connections_open{protocol="http2"}')
      sockets.first(10).each { |one| one.close_with(1000) }
      assert_equal [[1000, ""]], sockets.first(10).map(&:read_close).uniq
      assert_equal ["6"], sockets.last(10).map { |one| one.ask("count") }.uniq
      @one.cleanup
    end
  end

  # Neither what it is sent while it is not read nor what it does not read itself holds its connection's other streams.
  def test_a_socket_holds_no_other
    begin_server("--websocket-pending-max", "8M")
    busy, slow, other = together(3)
    busy.say("wait gate")
    wait_until("the call") { File.size?("#{@one.dir}/gate.in") }
    filler = Thread.new { 20.times { busy.say("x" * 50_000) } }
    slow.say("send 40x50000")
    assert_equal %w[1 2 3], Array.new(3) { other.ask("count") }
    File.write("#{@one.dir}/gate", "")
    assert_equal "gate", busy.message
    assert_equal [50_000], Array.new(20) { busy.message.bytesize }.uniq
    filler.join
    assert_equal [50_000], Array.new(40) { slow.message.bytesize }.uniq
  end

  # Their Close frames cannot be sent.
  def test_a_stop_with_clients_that_open_no_window
    begin_server("--shutdown-timeout", "40")
    sockets = together(3, window: 0)
    sockets.first.say("count")
    wait_until("the call") { metric('oribi_websocket_messages_total{direction="out"}') == 1 }
    began = E2E.clock
    @one.signal(:TERM)
    @one.wait(seconds: 60)
    assert_operator E2E.clock - began, :<, 20
    assert_equal [], sockets.map { |one| one.read_to_end }.reject(&:empty?)
  end

  # An application that takes its socket over has a tunnel through the stream.
  def test_an_application_that_takes_its_socket_over
    ADDRESSES.each do |address|
      begin_server(address: address, app: E2E.differing(:app))
      one = together(1, "/hijack-switches").first
      assert_equal 200, one.status
      assert_equal "bye", one.read_to_end
      wait_until("the tunnel's end") { metric('oribi_frontend_connections_open{protocol="tunnel"}').zero? }
      assert_equal 403, together(1, "/").first.status, "a 2xx would say that a socket is open"
      @one.cleanup
    end
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/doors"
require_relative "support/frames"
require_relative "support/haproxy"
require "json"

# Balancers in front of a door: HTTP/2 that carries the requests of many clients.
E2E.suite("door_balancers", transports: %i[tcp]) do
  include E2E::HAProxy
  include DoorServers

  # One connection to the server, as far as HAProxy may.
  const_set(:DEFAULTS, <<~TEXT)
    global
        nbthread 1
    defaults
        timeout connect 5s
        timeout client 30s
        timeout server 30s
        http-reuse always
        retries 0
  TEXT

  def setup
    super
    @clients = []
  end

  def teardown
    @clients&.each(&:close)
    super
  end

  def serve_h2c(*options, **more) = serve("--doors", "1", *options, address: "tcp://127.0.0.1:%{port}?door=on", **more)
  def connect(port = @one.port) = E2E::Client.new(["127.0.0.1", port]).tap { |client| @clients << client }
  def gone_app = "e2e/apps/gone#{E2E.differing(:app_extension)}"

  # A worker of whom the first call has all, until leave() is called. So all other requests wait in the door.
  def serve_held(*options)
    serve_h2c("--workers", "1", "--cancel-gone", "off", *options, app: gone_app)
  end

  def enter(one, stream)
    one.get(stream, "/looks/first")
    wait_until("the call's begin") { File.exist?("#{@one.dir}/first-entered.done") }
  end

  def leave = File.write("#{@one.dir}/first-left", "")
  def streams = JSON.parse(ctl("status", "--json").first).fetch("doors").sum { |door| door["streams"].to_i }
  def refute_cut = refute_match(/ended a connection/, @one.stderr)

  # --- what HTTP/2 has a client do for each answer ---

  def test_small_answers_at_ordinary_load
    serve_h2c("--workers", "2")
    h1, h2 = Array.new(2) { E2E.free_port }
    run_haproxy(<<~TEXT, h1)
      #{self.class::DEFAULTS}
          mode http
      listen front
          bind 127.0.0.1:#{h1}
          bind 127.0.0.1:#{h2} proto h2
          server one 127.0.0.1:#{@one.port} proto h2
    TEXT
    out, status = Open3.capture2e(DoorServers::PLAIN, "h2load", "-n", "6000", "-c", "4", "-m", "10", "http://127.0.0.1:#{h2}/pid")
    assert_predicate status, :success?
    assert_match(/ 6000 2xx/, out)
    refute_cut
  end

  def test_a_download_by_windows_of_100_octets
    serve_h2c
    one = E2E::Frames.new(connect, E2E::Frames::INITIAL_WINDOW_SIZE => 100)
    one.get(1, "/big?size=200000")
    bytes = 0
    loop do
      frame = one.await(:data)
      bytes += frame.payload.bytesize
      break if frame.flags & E2E::Frames::END_STREAM != 0

      [1, 0].each { |stream| one.send(:window_update, stream, [frame.payload.bytesize].pack("N")) }
    end
    assert_equal 200_000, bytes
  end

  # --- requests that are given up ---

  def cancel(stream) = E2E::Frames.frame(:rst_stream, stream, [8].pack("N"))
  def ask(one, stream, path) = E2E::Frames.frame(:headers, stream, "\x82".b + one.about(path), flags: E2E::Frames::END_STREAM | E2E::Frames::END_HEADERS)

  def assert_answered(one, *streams)
    until streams.empty?
      frame = one.next_frame
      refute_includes %i[rst_stream goaway], frame.type, "#{frame.stream}: #{frame.payload.unpack("N*")} #{@one.stderr}"
      streams.delete(frame.stream) if frame.type == :headers
    end
  end

  def test_resets_of_a_trusted_balancer
    serve_held("--trusted-proxies", "127.0.0.1")
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    client.send_raw((1..300).sum("".b) { |i| ask(one, 2 * i + 1, "/given-up") + cancel(2 * i + 1) })
    one.get(603, "/last")
    leave
    assert_answered(one, 1, 603)
    refute_cut
  end

  def test_resets_of_others_end_their_connection
    serve_held
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    client.send_raw((1..300).sum("".b) { |i| ask(one, 2 * i + 1, "/given-up") + cancel(2 * i + 1) })
    assert_equal 11, one.await(:goaway).payload.unpack("NN").last
    leave
    wait_until("the line of it") { @one.stderr.include?("too many resets (error 11 of HTTP/2)") }
  end

  def test_clients_of_haproxy_that_give_up
    serve_held("--trusted-proxies", "127.0.0.1")
    port = E2E.free_port
    spawn_haproxy("#{self.class::DEFAULTS}    mode http\nlisten front\n    bind 127.0.0.1:#{port} proto h2\n    server one 127.0.0.1:#{@one.port} proto h2\n")
    client = wait_until("HAProxy") { connect(port) rescue false }
    enter(one = E2E::Frames.new(client), 1)
    5.times do |round|
      wave = (1..60).map { |i| 2 * (60 * round + i) + 1 }
      client.send_raw(wave.sum("".b) { |stream| ask(one, stream, "/given-up") })
      wait_until("the requests") { streams == 61 }
      client.send_raw(wave.sum("".b) { |stream| cancel(stream) })
      wait_until("their end") { streams == 1 }
    end
    one.get(603, "/last")
    leave
    assert_equal [[1, "\x88".b], [603, "\x88".b]], Array.new(2) { one.await(:headers).then { |frame| [frame.stream, frame.payload[0]] } }.sort
    refute_cut
  end

  # RFC 9113 5.1.2.
  def test_a_reset_and_a_new_request_in_one_read
    serve_held
    client = connect
    enter(one = E2E::Frames.new(client), 1)
    (2..100).each { |i| one.get(2 * i - 1, "/waits") }
    client.send_raw((1..20).sum("".b) { |i| cancel(2 * i + 1) + ask(one, 199 + 2 * i, "/last") })
    leave
    assert_answered(one, 1, *(22..120).map { |i| 2 * i - 1 })
  end

  # More than a first read of a head would hold.
  def test_much_plain_http_at_a_port_of_tls
    serve("--doors", "1")
    before = door
    answer = connect.send_raw("GET /#{"x" * 9000} HTTP/1.1\r\nHost: a\r\n\r\n").read_to_end
    wait_until("a door that serves") { curl("/pid") rescue false }
    assert_equal before, door, @one.stderr
    assert_match(/\AHTTP\/1.1 400 /, answer)
  end
end

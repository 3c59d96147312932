# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"

# Clients of the frontend that want too much: of connections, of memory, of time.
E2E.suite("frontend_attacks", transports: %i[tcp]) do
  include FrontendServers

  def serve_h2c(*options, **more) = serve("--frontends", "1", *options, address: FrontendServers::PLAIN_ADDRESS, **more)
  def connect = hold(@one.connect)
  def frames(settings = {}) = E2E::Frames.new(connect, settings)

  # Connections that bring nothing make room for one that does, and are told so.
  def test_resting_connections_make_room
    serve_h2c("--connections-max", "4")
    resting = Array.new(4) { frames.tap { |one| one.await(:settings) } }
    assert_match(/\A\d+\z/, connect.get("/pid").body)
    last_stream, code = resting.first.await(:goaway).payload.unpack("NN")
    assert_equal [0, 0], [last_stream, code]
  end

  # What the client goes on sending does not take the answer away from it.
  def test_a_connection_error_arrives
    serve_h2c
    client = connect
    one = E2E::Frames.new(client)
    one.send(:push_promise, 1, "\0\0\0\2")
    16.times { one.send(:ping, 0, "12345678") }
    client.send_raw(E2E::Frames.frame(:data, 1, "x" * 16_000) * 8)
    code = one.await(:goaway).payload.unpack("NN").last
    assert_equal 1, code
    client.half_close
    assert_equal "", client.read_to_end
  end

  def test_a_body_slower_than_the_minimum_is_refused
    serve_h2c("--body-timeout", "1s", "--body-rate-min", "1000000")
    client = connect
    one = E2E::Frames.new(client)
    one.await(:settings)
    one.post(1, "/echo")
    wait_until("an answer before the body's end") do
      one.send(:data, 1, "x")
      client.readable? && one.next_frame.type == :headers
    end
    assert_equal "408 Request Timeout\n", one.await(:data).payload
  end

  # Windows of nothing: what the answers need beyond the budget goes to files, and nobody else waits.
  def test_answers_that_nobody_takes_stay_within_the_budget
    serve_h2c("--buffers-memory-max", "4m")
    connect.get("/big?size=200000")
    before = resident
    clients = Array.new(4) { frames(E2E::Frames::INITIAL_WINDOW_SIZE => 0) }
    clients.each { |one| 60.times { |i| one.get(2 * i + 1, "/big?size=200000") } }
    clients.each { |one| 60.times { one.await(:headers) } }
    assert_match(/\A\d+\z/, connect.get("/pid").body)
    assert_operator resident - before, :<, 24_000, "KiB that the frontend has grown by; the answers are 47,000"
    one = clients.first
    one.send(:window_update, 0, [10_000_000].pack("N"))
    one.send(:window_update, 119, [200_000].pack("N"))
    assert_equal 200_000, body_of(one).bytesize
  end

  # A worker is in a call that nobody waits for any more: nothing more goes out to it, so that the clients of others
  # find its hand-off queue as it was.
  def test_a_call_counts_until_it_has_ended
    serve_h2c("--workers", "1", "--cancel-gone", "off", "--access-log", "-", app: "e2e/apps/gone#{E2E.differing(:app_extension)}")
    one = frames
    begin_call(one, 1, "/looks/first")
    wait_until("the call's begin") { File.exist?("#{@one.dir}/first-entered.done") }
    one.send(:rst_stream, 1, [8].pack("N"))
    20.times do |i|
      begin_call(one, 2 * i + 3, "/given-up")
      one.send(:rst_stream, 2 * i + 3, [8].pack("N"))
    end
    begin_call(one, 43, "/last")
    File.write("#{@one.dir}/first-left", "")
    one.await(:headers)
    wait_until("the last line") { @one.stdout.include?("/last") }
    refute_match(%r{/given-up HTTP/2" (?!499 )}, @one.stdout, "no worker has had it")
  end

  # The frontend has given the request to whom it will when it answers the ping.
  def begin_call(one, stream, path)
    one.get(stream, path)
    one.send(:ping, 0, "12345678")
    one.await(:ping)
  end

  def body_of(one)
    body = +"".b
    loop do
      frame = one.await(:data)
      body << frame.payload
      return body if frame.flags & E2E::Frames::END_STREAM != 0
    end
  end

  def resident = File.read("/proc/#{frontend}/status")[/^VmRSS:\s+(\d+)/, 1].to_i
end

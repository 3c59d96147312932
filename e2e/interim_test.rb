# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"

# 80 MB of interim answers for clients that read nothing: what waits for such a client is bounded, the rest is left out,
# and the answer comes.
E2E.suite("interim", transports: %i[tcp]) do
  include FrontendServers

  # What sockets hold on both sides, and a piece of ours.
  BYTES_MAX = 30_000_000
  FRONTEND = FrontendServers::PLAIN_ADDRESS

  def launch(address)
    serve("--workers", "1", *("--early-hints" if E2E::RUBY), address: address, app: "e2e/apps/interim.#{E2E::RUBY ? "ru" : "psgi"}", env: { "E2E_DIR" => @dir })
    hold(@one.connect)
  end

  def await_said = wait_until("the application to have said all: #{@one.stderr}") { File.exist?("#{@dir}/said") }

  { "on_a_plain_address" => "127.0.0.1:%{port}", "behind_a_frontend" => FRONTEND }.each do |name, address|
    define_method(:"test_a_client_of_http11_that_does_not_read_#{name}") do
      client = launch(address)
      client.request("GET", "/", { "Connection" => "close" })
      await_said
      text = client.read_to_end
      assert text.end_with?("answered"), text[-200..]
      assert_operator text.bytesize, :<, BYTES_MAX
    end
  end

  def peak(pid) = File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+) kB/, 1].to_i * 1024

  def test_a_client_of_http2_that_does_not_read
    skip_without "the memory of processes"
    client = launch(FRONTEND)
    one = E2E::Frames.new(client)
    one.await(:settings)
    before = peak(frontend)
    one.get(1, "/")
    await_said
    assert_equal "answered", one.await(:data).payload
    assert_operator peak(frontend) - before, :<, BYTES_MAX
  end
end

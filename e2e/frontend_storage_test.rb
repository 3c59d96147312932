# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/frames"

# A frontend whose TMPDIR is full. What of an answer has no room there waits with its worker until the client takes
# more; what cannot be kept at all, of bodies and of answers, is said in the error log, and the access log tells no
# answer as whole that was not.
E2E.suite("frontend_storage", transports: %i[tcp]) do
  include FrontendServers

  MEGABYTE = 1 << 20

  # The kernel gives a folder of this size, which nobody else sees, to the server alone.
  def serve_in(size, *options, address: bind)
    inside = ["unshare", "--mount", "--propagation", "private"]
    mount = "mount -t tmpfs -o size=#{size} tmpfs #{@dir}/tmp"
    FileUtils.mkdir_p("#{@dir}/tmp")
    skip "no mount namespaces for us here" unless system(*inside, "sh", "-c", mount, err: File::NULL)
    argv = [*inside, "sh", "-c", "#{mount} && exec \"$@\"", "sh", E2E::Server.binary, "--bind", address, "--no-dev", "--control", "#{@dir}/control",
            "--workers", "1", "--access-log", "#{@dir}/access.log", "--access-log-format", "common", *options, File.expand_path(E2E.differing(:app), E2E::ROOT)]
    @one = E2E::Server.new(argv: argv, env: { "TMPDIR" => "#{@dir}/tmp" }).start
    wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
  end

  def access_lines = File.readlines("#{@dir}/access.log", chomp: true)

  H2C = FrontendServers::PLAIN_ADDRESS
  PRIOR = "--http2-prior-knowledge"

  { "tls" => [nil, "https", "--http2"], "h2c" => [H2C, "http", PRIOR] }.each do |name, (address, scheme, flag)|
    # It waits in the socket of its channel and in its worker's memory.
    define_method(:"test_answers_that_the_disk_does_not_take_are_whole_#{name}") do
      serve_in("128k", "--response-memory-max", "8M", address: address || bind)
      others = Array.new(3) { |i| Thread.new { curl("/big?size=#{(2 + i) * MEGABYTE}", flag, "--limit-rate", "4M", scheme: scheme).bytesize } }
      assert_equal [2, 3, 4], others.map { |thread| thread.value / MEGABYTE }
      refute_match(/cut|cannot be stored|breaks off/, @one.stderr)
      wait_until("the access log") { access_lines.size >= 3 }
      assert_equal Array.new(3) { |i| (2 + i) * MEGABYTE }, access_lines.map { |line| line[/ 200 (\d+)$/, 1].to_i }.sort
    end

    define_method(:"test_a_body_that_cannot_be_stored_has_its_lines_#{name}") do
      serve_in("128k", address: address || bind)
      File.write("#{@dir}/body", "x" * 3 * MEGABYTE)
      assert_match(/\A507 /, curl("/echo", flag, "--data-binary", "@#{@dir}/body", scheme: scheme))
      assert_match(/request from \S+ refused with 507: request body cannot be stored in #{@dir}\S*: no space left on device: "POST \/echo/, @one.stderr)
      wait_until("the access log") { access_lines.grep(/"POST \/echo \S+" 507 /).size == 1 }
      assert_equal "abc", curl("/echo", flag, "-d", "abc", scheme: scheme)
    end
  end

  # Nothing has room: the worker cuts its answer, and says so.
  def test_an_answer_that_nothing_takes_is_cut_in_the_logs
    serve_in("128k", "--response-memory-max", "64K", address: H2C)
    client = hold(@one.connect)
    one = E2E::Frames.new(client, E2E::Frames::INITIAL_WINDOW_SIZE => 0)
    one.get(1, "/big?size=#{16 * MEGABYTE}")
    wait_until("the line: #{@one.stderr}") { @one.stderr.match?(/GET \/big\S*: answer cut after \d+ bytes of its body: the rest cannot be stored in #{@dir}/) }
    wait_until("the access log") { access_lines.grep(/"GET \/big\S* \S+" 200 \d+ cut$/).size == 1 }
    one.send(:window_update, 1, [32 * MEGABYTE].pack("N"))
    one.send(:window_update, 0, [32 * MEGABYTE].pack("N"))
    assert_equal 2, one.await(:rst_stream).payload.unpack1("N")
  end

  # HTTP/1.1: the file is the reactor's, and the line the frontend's.
  def test_an_answer_over_http11_that_cannot_be_stored_has_a_line
    serve_in("128k", "--response-memory-max", "64K", address: H2C)
    client = hold(@one.connect)
    client.request("GET", "/big?size=#{12 * MEGABYTE}")
    wait_until("the line: #{@one.stderr}") { @one.stderr.match?(/GET \/big\S*.*: the rest cannot be stored in #{@dir}\S*: no space left on device/) }
    assert_operator client.read_to_end.bytesize, :<, 12 * MEGABYTE
  rescue Errno::ECONNRESET
    pass
  end
end

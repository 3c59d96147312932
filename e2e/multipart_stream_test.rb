# frozen_string_literal: true

require "digest"
require_relative "support"
require_relative "support/tracing"

# Forms that the server takes apart while they arrive.
E2E.suite("multipart_stream", transports: E2E::EITHER) do
  include E2E::Tracing

  def setup
    super
    @one = start("--workers", "1", "--multipart-stream", "--access-log", "off",
                 app: "e2e/apps/multipart_stream#{E2E.differing(:app_extension)}", env: library)
  end

  def library = E2E::RUBY ? {} : { "PERL5LIB" => "#{E2E::ROOT}/perl/blib/lib:#{E2E::ROOT}/perl/blib/arch" }
  def one_worker = connect(@one).get("/pid").body.to_i

  const_set(:TYPE, { "Content-Type" => "multipart/form-data; boundary=b" }.freeze)
  const_set(:BIG, ("0123456789abcde\n" * 65_536).freeze)

  def part(name, content, file = nil)
    file &&= "; filename=\"#{file}\""
    "--b\r\nContent-Disposition: form-data; name=\"#{name}\"#{file}\r\n\r\n#{content}\r\n"
  end

  def body = "#{part("a", "1")}#{part("f", self.class::BIG, "f.bin")}#{part("s", "small", "s.bin")}--b--\r\n"
  def told = "a=1 f:f.bin:1048576 s:s.bin:5"
  def post(target, text, client = connect(@one)) = client.post(target, text, self.class::TYPE)

  def chunked(text) = "#{text.scan(/.{1,50000}/m).map { |piece| "#{piece.bytesize.to_s(16)}\r\n#{piece}\r\n" }.join}0\r\n\r\n"

  def test_sized_chunked_and_pipelined
    client = connect(@one)
    2.times { assert_equal told, post("/", body, client).body }
    assert_equal Digest::MD5.hexdigest(body), post("/whole", body, client).body
    head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
    client.send_raw(head + chunked(body) + head + chunked("#{part("b", "2")}--b--"))
    assert_equal told, client.read_response.body
    assert_equal "b=2", client.read_response.body
  end

  def test_refused_before_the_application
    { 400 => [body[0..-10], body.sub("\r\n--b\r\n", "\r\n--bad\r\n")], 413 => [part("f", "x" * 2000, "f") * 129] }.each do |status, bodies|
      bodies.each { |text| assert_equal status, post("/", text).status }
    end
    assert_equal told, post("/", body).body
  end

  def unnamed_files(folder)
    Dir.children(folder).count do |fd|
      File.readlink("#{folder}/#{fd}").match?(/#|\A(?!\/(?:dev\/shm|memfd)).* \(deleted\)\z/) # O_TMPFILE, and a name that was taken away
    rescue Errno::ENOENT # closed meanwhile
      false
    end
  end

  # A client that leaves in the middle leaves no descriptor behind.
  def test_early_close
    folder = "/proc/#{one_worker}/fd"
    files = -> { unnamed_files(folder) }
    client = connect(@one)
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
    client.send_raw(head + body[0, 500_000])
    wait_until("the file") { files.call.positive? }
    client.close
    wait_until("its end") { files.call.zero? }
  end

  # The bytes of a large file are written once.
  def test_an_upload_is_written_once
    skip_without "copy within the kernel"
    skip_without_strace
    client = connect(@one)
    post("/", body, client)
    lines = traced(@one, pid: one_worker) { assert_equal told, post("/", body, client).body }
    written = lines.sum { |line| line[/ (?:write|pwrite64|writev|sendfile|copy_file_range)\(.*= (\d+)$/, 1].to_i }
    assert_operator written, :<, self.class::BIG.bytesize * 1.1, lines.join
  end
end

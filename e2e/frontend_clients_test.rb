# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "digest/sha2"
require "json"
require "net/http"

# What others have written to speak with servers, through a frontend: as their manuals say, with their own checks.
E2E.suite("frontend_clients", transports: %i[tcp]) do
  include FrontendServers

  BODY = Random.new(1).bytes(300_000).freeze
  DIGEST = "#{BODY.bytesize} #{BODY.bytesize} #{Digest::SHA256.hexdigest(BODY)}".freeze
  BIG = 3_000_000

  def url = "https://localhost:#{@one.port}"

  def run_client(*argv, env: {}, stdin: "")
    out, error, status = Open3.capture3(env, "timeout", "30", *argv, stdin_data: stdin, binmode: true)
    assert status.success?, "#{argv.first(2).join(" ")}: #{status} #{error.lines.last(20).join} #{@one.stderr}"
    out
  end

  def body_file = File.join(@dir, "body").tap { |path| File.binwrite(path, BODY) }

  # It has padding and dependencies, and fails unless each stream ends well.
  def test_nghttp
    serve("--early-hints")
    File.write("#{@dir}/told", "told")
    table = run_client("nghttp", "--stat", "-n", "-y", "-m", "40", "-b", "8", "#{url}/parts?count=20", "#{url}/big?size=#{BIG}")
    assert_equal 80, table.scan(/ 200 +[\dKM]+ \/(?:parts|big)/).size, table
    assert_equal DIGEST, run_client("nghttp", "-y", "-d", body_file, "#{url}/digest")
    assert_includes run_client("nghttp", "-y", "-d", body_file, "--trailer", "x-sum: 1", "#{url}/trailers"), "x-sum"
    assert_equal "told", run_client("nghttp", "-y", "--expect-continue", "-d", "#{@dir}/told", "#{url}/echo")
    assert_includes run_client("nghttp", "-y", "-v", "#{url}/hints"), ":status: 103"
  end

  # Both versions, with a ticket too. s_client fails where a connection ends without close_notify, as one must whose
  # answer is cut.
  def test_openssl
    serve
    ask = "GET /env HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    words = ["-connect", "127.0.0.1:#{@one.port}", "-servername", "localhost", "-CAfile", "#{@dir}/site.pem", "-verify_return_error"]
    { "-tls1_2" => "TLSv1.2", "-tls1_3" => "TLSv1.3" }.each do |flag, version|
      out = run_client("openssl", "s_client", *words, flag, "-ign_eof", "-quiet", stdin: ask)
      assert_includes out, %("rack.url_scheme":"https") if E2E::RUBY
      assert_includes out, %("HTTPS":"on")
      told = run_client("openssl", "s_client", *words, flag, "-alpn", "h2,http/1.1", "-sess_out", "#{@dir}/session", "-ign_eof", stdin: ask.sub("/env", "/pid"))
      assert_match(/ALPN protocol: h2/, told)
      told = run_client("openssl", "s_client", *words, flag, "-sess_in", "#{@dir}/session", "-ign_eof", stdin: ask)
      assert_match(/Reused, #{version}/, told)
    end
    cut, status = Open3.capture2e("openssl", "s_client", *words, "-quiet", "-ign_eof", stdin_data: ask.sub("/env", "/raise-in-body?after=2").sub("1.1", "1.0"))
    assert_equal [false, true], [status.success?, cut.include?("two")], cut
    _, status = Open3.capture2e("openssl", "s_client", *words, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", stdin_data: ask)
    refute status.success?
  end

  # The application and the log hear of the client's version, not of the one that frontends speak with workers.
  def test_clients_of_http_1_0
    serve("--access-log", "-")
    seen = JSON.parse(curl("/env", "--http1.0"))
    assert_equal "HTTP/1.0", seen["SERVER_PROTOCOL"]
    assert_equal "part 0\npart 1\n", curl("/parts?count=2", "--http1.0")
    refute_match(/transfer-encoding/i, curl("/parts?count=2", "--http1.0", "-i"))
    wait_until("the lines") { @one.stdout.scan("HTTP/1.0").size == 3 }
  end

  def test_ruby
    serve
    store = { use_ssl: true, ca_file: "#{@dir}/site.pem", ipaddr: "127.0.0.1" }
    Net::HTTP.start("localhost", @one.port, nil, nil, nil, nil, store) do |http|
      assert_equal "Hello, World!", http.get("/").body
      assert_equal DIGEST, http.post("/digest", BODY).body
      request = Net::HTTP::Post.new("/digest", "transfer-encoding" => "chunked")
      request.body_stream = File.open(body_file)
      assert_match(/#{DIGEST[/\w+\z/]}\z/, http.request(request).body)
      assert_equal BIG, http.get("/big?size=#{BIG}", "accept-encoding" => "gzip").body.bytesize
      assert_equal "204", http.get("/status/204").code
      assert_equal "", http.head("/big?size=5").body.to_s
      assert_equal "line 0\nline 1\nline 2\n", http.get("/stream").body
    end
  end

  PERL = <<~'PERL'
    use strict; use warnings; use HTTP::Tiny;
    my ($url, $ca, $file) = @ARGV;
    my $http = HTTP::Tiny->new(verify_SSL => 1, SSL_options => { SSL_ca_file => $ca }, timeout => 20);
    open my $in, '<:raw', $file or die $!;
    my $body = do { local $/; <$in> };
    my @got = map { $_->{success} or die "$_->{status} $_->{content}"; $_->{content} } (
        $http->get("$url/"), $http->post("$url/digest", { content => $body }),
        $http->post("$url/digest", { content => sub { substr $body, 0, 70_000, '' } }),
        $http->get("$url/stream"), $http->get("$url/big?size=3000000"),
    );
    print join '|', @got[0 .. 3], length $got[4];
  PERL

  def test_perl
    skip "no IO::Socket::SSL here: libio-socket-ssl-perl" unless system("perl", "-MIO::Socket::SSL", "-e1", err: File::NULL)
    serve
    got = run_client("perl", "-e", PERL, url, "#{@dir}/site.pem", body_file).split("|")
    assert_equal ["Hello, World!", DIGEST], got.first(2)
    assert_match(/#{DIGEST[/\w+\z/]}\z/, got[2])
    assert_equal ["line 0\nline 1\nline 2\n", BIG.to_s], got.last(2)
  end

  # 300 streams of one session, of which the peer allows 100 at a time; bodies both ways; one that is given up.
  NODE = <<~'NODE'
    const http2 = require('http2'), fs = require('fs');
    const [, url, ca, file] = process.argv;
    const session = http2.connect(url, { ca: fs.readFileSync(ca) });
    const ask = (path, body) => new Promise((well, ill) => {
      const stream = session.request(body ? { ':path': path, ':method': 'POST' } : { ':path': path });
      let text = '', status;
      stream.on('response', (headers) => { status = headers[':status']; });
      stream.setEncoding('latin1').on('data', (piece) => { text += piece; }).on('end', () => well([status, text])).on('error', ill);
      stream.end(body);
    });
    const give_up = () => new Promise((well) => {
      const stream = session.request({ ':path': '/flood?count=1000' });
      stream.once('data', () => stream.close(http2.constants.NGHTTP2_CANCEL)).on('close', well);
    });
    (async () => {
      const body = fs.readFileSync(file);
      const pids = await Promise.all(Array.from({ length: 300 }, () => ask('/pid')));
      await give_up();
      const [digest, big, stream] = await Promise.all([ask('/digest', body), ask('/big?size=3000000'), ask('/stream')]);
      await new Promise((well) => session.ping(well));
      console.log(JSON.stringify([pids.filter(([status]) => status === 200).length, digest, big[1].length, stream]));
      session.close();
    })().catch((error) => { console.error(error); process.exit(1); });
  NODE

  def test_node
    skip "no node here" unless system("command -v node >/dev/null")
    serve
    got = JSON.parse(run_client("node", "-e", NODE, url, "#{@dir}/site.pem", body_file))
    assert_equal [300, [200, DIGEST], BIG, [200, "line 0\nline 1\nline 2\n"]], got
  end
end

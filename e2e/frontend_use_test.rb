# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "digest/sha2"
require "json"

# How tls:// is used: words of the configuration file, keys with passwords, the way from http, what a look at
# certificates finds, what a frontend cannot do, and renewal.
E2E.suite("frontend_use", transports: %i[tcp]) do
  include FrontendServers

  PASSWORD = "a password that is nowhere else"

  def script(name, text)
    File.join(@dir, name).tap { |path| File.write(path, "#!/bin/sh\n#{text}\n", perm: 0o700) }
  end

  def fails_to_start(*options, address: bind)
    argv = [E2E::Server.binary, "--bind", address, "--no-dev", *options, File.expand_path(E2E.differing(:app), E2E::ROOT)]
    one = E2E::Server.new(argv: argv).run_to_end
    assert_equal 1, one.wait.exitstatus
    one.stderr
  ensure
    one&.cleanup
  end

  # --- words ---

  def test_files_are_keywords
    %w[pem key].each { |ext| FileUtils.cp("#{@dir}/site.#{ext}", "#{@dir}/a&b 50%.#{ext}") }
    FrontendServers.certificate(@dir, "other", "DNS:other.test")
    ruby = %(bind "tls://127.0.0.1:%{port}", certificate: "#{@dir}/a&b 50%.pem", key: "#{@dir}/a&b 50%.key"\n) +
           %(bind "127.0.0.1:0", "#{@dir}/s"\ncertificate "#{@dir}/other.pem", key: "#{@dir}/other.key"\n)
    perl = %(bind 'tls://127.0.0.1:%{port}', certificate => '#{@dir}/a&b 50%.pem', key => '#{@dir}/a&b 50%.key';\n) +
           %(bind '127.0.0.1:0', '#{@dir}/s';\ncertificate '#{@dir}/other.pem', key => '#{@dir}/other.key';\n)
    serve_file(E2E::RUBY ? ruby : perl)
    assert_match(/\A\d+\z/, curl("/pid"))
    assert_equal "/CN=other", peer_certificate("other.test").subject.to_s
    assert_match(/listening on tls:\S+ \S*127\.0\.0\.1:\S+ \S*#{@dir}\/s/, @one.stderr)
  end

  # A word that is none of these would be taken for the default, which may be less than was meant.
  def test_words_that_are_none
    assert_match(/tls.min must be one of: 1\.2 1\.3; not "1\.1"/, fails_to_start("--tls-min", "1.1"))
    assert_match(/client.verify must be one of: required optional; not "yes"/, fails_to_start("--client-verify", "yes"))
    assert_match(/client_verify needs client_ca/, fails_to_start("--client-verify", "required"))
    assert_match(/\bfrontend_user: there is no user 'nobody-here'/, fails_to_start("--frontend-user", "nobody-here"))
    serve("--client-ca", "#{@dir}/site.pem", "--client-verify", "optional", "--tls-min", "1.3")
    assert_match(/\A\d+\z/, curl("/pid"))
  end

  def test_a_certificate_without_tls_is_an_error
    { %W[--certificate #{@dir}/site.pem,#{@dir}/site.key] => "certificate", %W[--client-ca #{@dir}/site.pem] => "client_ca",
      %w[--client-verify optional] => "client_verify" }.each do |options, name|
      error = fails_to_start(*options, address: FrontendServers::PLAIN_ADDRESS)
      assert_match(/\A[^\n]*: #{name} is set, and no address begins with tls:\/\/\n\z/, error)
    end
  end

  def test_what_does_nothing_is_a_warning
    serve("--hsts", "60", "--frontends", "1", "--https-redirect", "443", address: "tcp://127.0.0.1:%{port}")
    assert_equal ["hsts is set, and no address begins with tls://", "frontends is set, and no address has a frontend (tls://, ?frontend=on)",
                  "https_redirect is set, but no address is tls:// and trusted_proxies is empty"], @one.stderr.scan(/warn\S*: (.*)/).flatten, @one.stderr
    assert_equal({ "frontend-option-unused" => "risk" }, look("--frontend-user", "root", address: "127.0.0.1:0")) if Process.uid.zero?
  end

  def test_a_user_that_is_not_there_is_found_beforehand
    address = "tls://127.0.0.1:0?certificate=#{@dir}/site.pem&key=#{@dir}/site.key"
    assert_equal "wrong", look("--frontend-user", "nobody-here")["frontend-user"]
    { "frontend-user" => /frontend_user: there is no user 'nobody-here'/, "user" => /user: there is no user 'nobody-here'/ }.each do |option, line|
      output, status = Open3.capture2e(E2E::Server.binary, "--check", "-b", address, "--#{option}", "nobody-here",
                                       File.expand_path(E2E.differing(:app), E2E::ROOT))
      assert_equal 1, status.exitstatus, output
      assert_match line, output
    end
  end

  def test_authorities_that_are_none_are_named
    assert_match(/client_ca #{@dir}\/site\.key: there is no certificate in it/, fails_to_start("--client-ca", "#{@dir}/site.key"))
  end

  # --- sockets that are handed down ---

  # Starts the command with a socket as start_server (or, with names, systemd) hands it down; %{port} in a word is its
  # port. Gives that, and where the process writes to.
  def with_socket(*words, names: nil)
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    env = names ? { "LISTEN_FDS" => "1", "LISTEN_FDNAMES" => names } : { "SERVER_STARTER_PORT" => "127.0.0.1:#{port}=3" }
    words = words.map { |word| word.gsub("%{port}", port.to_s) }
    pid = spawn({ "PORT" => nil, **env }, "/bin/sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh", E2E::Server.binary, "--workers", "1", "--no-dev",
                *words, File.expand_path(E2E.differing(:app), E2E::ROOT), 3 => listener, in: File::NULL, %i[out err] => "#{@dir}/said")
    yield port, pid
  ensure
    listener&.close
    pid && Process.kill(:TERM, pid) && Process.wait(pid) unless @ended
  end

  def said = File.read("#{@dir}/said")

  def test_sockets_that_are_handed_down_speak_tls
    address = "tls://127.0.0.1:%{port}?certificate=#{@dir}/site.pem&key=#{@dir}/site.key"
    apart = ["--bind", "tls://127.0.0.1:%{port}", "--certificate", "#{@dir}/site.pem,#{@dir}/site.key"]
    [nil, "web"].product([["--bind", address], apart]).each do |names, words|
      with_socket(*words, names: names) do |port|
        E2E.wait_until("the server to be up: #{said}") { said.include?("listening on") }
        assert_match(/listening on tls:\/\/127\.0\.0\.1:#{port}/, said)
        tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", port)).connect
        ask(tls)
        tls.close
        refute_includes said, "bind is ignored"
      end
    end
  end

  def ask(tls)
    tls.write("GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert_match(/\AHTTP\/1.1 200/, tls.readpartial(4096))
  end

  # Never plain HTTP where TLS was asked for.
  def test_what_cannot_be_tls_of_a_socket_that_is_handed_down_is_an_error
    pair = "#{@dir}/site.pem,#{@dir}/site.key"
    named = /certificate is set, and no bind names a socket that is handed down by tls:\/\/, such as tls:\/\/127\.0\.0\.1:\d+$/
    { [nil, "--certificate", pair] => named, ["web", "--certificate", pair] => named,
      ["web", "--bind", "fd://web", "--certificate", pair] => named,
      [nil, "--bind", "127.0.0.1:%{port}", "--certificate", pair] => named,
      [nil, "--bind", "tls://127.0.0.1:1", "--certificate", pair] => %r{ tls://127\.0\.0\.1:1: SERVER_STARTER_PORT hands no such socket},
      [nil, "--bind", "127.0.0.1:1?frontend=on"] => /127\.0\.0\.1:1: SERVER_STARTER_PORT hands no such socket/ }.each do |(names, *words), line|
      with_socket(*words, names: names) do |_port, pid|
        @ended = true
        assert_equal 1, Process.wait2(pid)[1].exitstatus, words.inspect
        assert_match line, said
        assert_equal 1, said.lines.size, said
      end
    end
  end

  # --- keys with passwords ---

  def test_a_command_gives_the_password_of_a_key
    FrontendServers.certificate(@dir, "site", password: PASSWORD)
    command = script("password", %(echo "$@" > #{@dir}/asked\ncat "$1"))
    File.write("#{@dir}/words", "#{PASSWORD}\n")
    serve("--certificate-password-command", "#{command} #{@dir}/words")
    assert_equal "#{@dir}/words #{@dir}/site.key\n", File.read("#{@dir}/asked")
    assert_match(/\A\d+\z/, curl("/pid"))
    before = FrontendServers.certificate(@dir, "site", password: PASSWORD)
    output, status = ctl("certificates")
    assert status.success?, output
    assert_equal before.serial, peer_certificate("localhost").serial
    assert_nowhere(@one.descendants, PASSWORD)
  end

  # Whoever may read the memory of these processes finds no password in it.
  def assert_nowhere(pids, text)
    return print("(not root: memory of a frontend is not looked at) ") unless Process.uid.zero?

    pids.each { |pid| refute FrontendServers.memory_has?(pid, text), "#{File.read("/proc/#{pid}/comm")} has it" }
  end

  # 1,024 bytes of a password, and sixteen words of a command, and not one more.
  def test_the_longest_password_and_command
    FrontendServers.certificate(@dir, "site", password: "p" * 1024)
    command = script("password", %(printf "%s" #{"p" * 1024}))
    serve("--certificate-password-command", [command, *["word"] * 15].join(" "))
    assert_match(/\A\d+\z/, curl("/pid"))
    assert_match(/is empty, or longer than 16 words/, fails_to_start("--certificate-password-command", [command, *["word"] * 16].join(" ")))
    longer = script("longer", %(printf "%s" #{"p" * 1025}))
    assert_match(/printed what is no password/, fails_to_start("--certificate-password-command", longer))
  end

  def test_no_password_is_one_line
    FrontendServers.certificate(@dir, "site", password: PASSWORD)
    asked = "no password for #{@dir}/site.key: certificate_password_command"
    { [] => /site\.key is encrypted: set certificate_password_command/,
      ["--certificate-password-command", script("three", "exit 3")] => /#{asked} ended with exit code 3/,
      ["--certificate-password-command", script("silent", ":")] => /#{asked} printed nothing/,
      ["--certificate-password-command", script("long", "head -c 5000 /dev/zero")] => /#{asked} printed more than/,
      ["--certificate-password-command", "#{@dir}/none"] => /#{asked} cannot be started/,
      ["--certificate-password-command", script("wrong", "echo other")] => /its key cannot be read: its password is another one/ }.each do |options, words|
      error = fails_to_start(*options)
      assert_match words, error
      assert_equal 1, error.lines.size, error
    end
  end

  # --- from http to https ---

  def test_other_requests_are_sent_to_https
    plain = E2E.free_port
    serve("--bind", "tcp://127.0.0.1:#{plain}", "--https-redirect", "443", "--hsts", "60", "--health", "/up", "--trusted-proxies", "127.0.0.1")
    assert_match(/^strict-transport-security: max-age=60\r$/, curl("/pid", "-i"))
    moved = plain_head(plain, "/a%20b?c=d")
    assert_match(/\AHTTP\/1.1 301 .*^Location: https:\/\/example\.test\/a%20b\?c=d\r$/m, moved)
    refute_match(/strict-transport/i, moved) # RFC 6797 7.2
    assert_match(/\AHTTP\/1.1 308 .*^Location: https:\/\/example\.test\/echo\r$/m, plain_head(plain, "/echo", "-d", "x"))
    assert_match(/\AHTTP\/1.1 200/, plain_head(plain, "/up"))
    assert_match(/\AHTTP\/1.1 404/, plain_head(plain, "/.well-known/acme-challenge/none")) # the application's
    assert_match(/\AHTTP\/1.1 301/, plain_head(plain, "/.well-known/acme-challenge/../../pid", "--path-as-is"))
    assert_match(/\AHTTP\/1.1 200/, plain_head(plain, "/pid", "-H", "X-Forwarded-Proto: https"))
  end

  def test_the_port_stands_where_it_is_no_usual_one
    serve("--https-redirect", "8443", address: "tcp://127.0.0.1:%{port}")
    assert_match(/^Location: https:\/\/example\.test:8443\/\r$/, plain_head(@one.port, "/"))
    assert_match(/\AHTTP\/1.1 301 .*^Connection: close/m, plain_head(@one.port, "/", "--http1.0"))
  end

  def plain_head(port, target, *words)
    out, error, = Open3.capture3(FrontendServers::PLAIN, "curl", "-sS", "-i", "--max-time", FrontendServers.patience, "-H", "Host: example.test", *words,
                                 "http://127.0.0.1:#{port}#{target}")
    assert_empty error
    out
  end

  # --- what a look finds ---

  def look(*words, address: "tls://127.0.0.1:0?certificate=#{@dir}/site.pem&key=#{@dir}/site.key")
    output, = Open3.capture2(E2E::Server.binary, "check", "--json", "-b", address, *words, File.expand_path(E2E.differing(:app), E2E::ROOT))
    JSON.parse(output)["findings"].select { |one| one["id"] =~ /\A(certificate|key|frontend|https)/ }.to_h { |one| [one["id"], one["level"]] }
  end

  # --check: its exit code and what it says.
  def checked
    Open3.capture2e(E2E::Server.binary, "--check", "-b", "tls://127.0.0.1:0?certificate=#{@dir}/site.pem&key=#{@dir}/site.key",
                    File.expand_path(E2E.differing(:app), E2E::ROOT)).then { |output, status| [status.exitstatus, output] }
  end

  def test_a_look_at_certificates
    days = 86_400
    FrontendServers.certificate(@dir, "site", ends_s: 90 * days)
    assert_empty look
    assert_equal 0, checked[0]
    { { ends_s: 20 * days } => {}, { begins_s: 77 * days, ends_s: 13 * days } => { "certificate-expires" => "risk" },
      { begins_s: days, ends_s: -3600 } => { "certificate-expired" => "wrong" },
      { ends_s: 90 * days, by: "authority" } => { "certificate-chain" => "risk" },
      { ends_s: 90 * days, key: OpenSSL::PKey::RSA.new(1024) } => { "certificate-key" => "risk", "certificate" => "wrong" } }.each do |how, found|
      FrontendServers.certificate(@dir, "site", **how)
      assert_equal found, look, how.keys.to_s
      code, output = checked
      assert_equal found.value?("wrong") ? 1 : 0, code, output
      assert_match(/\A#{E2E::COMMAND}: [^\n]*site\.pem: (it has expired, on \d{4}-|OpenSSL does not take it)/, output) if found.value?("wrong")
      assert_match(/^warning: [^\n]*site\.pem: /, output) if found.values == ["risk"]
    end
    FrontendServers.certificate(@dir, "site", nil, ends_s: 90 * days)
    assert_equal({ "certificate-names" => "risk" }, look)
  end

  def test_a_look_at_keys_and_addresses
    FrontendServers.certificate(@dir, "site", ends_s: 90 * 86_400)
    File.chmod(0o644, "#{@dir}/site.key")
    assert_equal({ "key-readable" => "risk" }, look)
    File.chmod(0o600, "#{@dir}/site.key")
    FrontendServers.certificate(@dir, "other")
    assert_equal({ "certificate" => "wrong" }, look(address: "tls://127.0.0.1:0?certificate=#{@dir}/site.pem&key=#{@dir}/other.key"))
    assert_equal({ "certificate" => "wrong" }, look(address: "tls://127.0.0.1:0?certificate=#{@dir}/none.pem"))
    assert_equal({ "certificate" => "wrong" }, look(address: "tls://127.0.0.1:0"))
    assert_equal({ "certificate-unused" => "wrong" }, look("--certificate", "#{@dir}/site.pem,#{@dir}/site.key", address: "127.0.0.1:0"))
    assert_equal({ "https-redirect" => "risk" }, look("--https-redirect", "443", address: "127.0.0.1:0"))
  end

  # --- what a frontend cannot do ---

  def status_of(pid) = File.read("/proc/#{pid}/status").scan(/^(\w+):\s+(\S+)/).to_h

  # A body beyond what memory takes is in a file, which a confined frontend must still get; so is an answer.
  def test_a_confined_frontend_takes_and_gives_what_is_beyond_its_memory
    serve("--body-memory-max", "16K", "--response-memory-max", "16K")
    assert_equal E2E.portable? ? %w[0 0] : %w[2 1], status_of(frontend).values_at("Seccomp", "NoNewPrivs")
    assert_equal "0 0", File.read("/proc/#{frontend}/limits")[/^Max core file size\s+(\d+)\s+(\d+)/] && "#{$1} #{$2}"
    big = "#{@dir}/big"
    File.binwrite(big, Random.new(1).bytes(6_000_000))
    %w[--http1.1 --http2].each do |protocol|
      out = curl("/echo", protocol, "--data-binary", "@#{big}", "-H", "Content-Type: application/octet-stream", "--limit-rate", "30M")
      assert_equal File.binread(big), out.b, protocol
      assert_equal 8_000_000, curl("/big?size=8000000", protocol, "--limit-rate", "30M").bytesize
    end
    refute_match(/(error|warning): /, @one.stderr)
    assert_a_body_is_in_a_file
  end

  def assert_a_body_is_in_a_file
    tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port)).connect
    tls.write("POST /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n#{"x" * 2_000_000}")
    E2E.wait_until("a file without a name") { E2E::Processes.descriptors(frontend).values.grep(/\(deleted\)\z/).any? }
    tls.write("x" * 1_000_000)
    assert_equal "x" * 3_000_000, tls.read.split("\r\n\r\n", 2).last
  ensure
    tls&.close
  end

  # It cannot open the new file by itself.
  # Longer than what goes to a worker with a new channel: such a head travels in a file, and its body in another.
  def test_heads_that_are_longer_than_a_message
    ["", "b" * 100, "b" * 300_000].each do |body|
      serve("--workers", "2", "--head-bytes-max", "1M", address: FrontendServers::PLAIN_ADDRESS)
      client = hold(@one.connect)
      [1_000_000, 80_000].each do |bytes|
        answer = client.post("/digest", body, { "X-Long" => "x" * bytes })
        assert_equal [200, "#{body.bytesize} #{body.bytesize} #{Digest::SHA256.hexdigest(body)}"], [answer.status, answer.body]
      end
      @one.cleanup
    end
  end

  def test_a_frontend_goes_on_in_another_log
    log = "#{@dir}/log"
    app = File.expand_path(E2E.differing(:app), E2E::ROOT)
    @one = E2E::Server.new(argv: [E2E::Server.binary, "--bind", bind, "--no-dev", "--control", "#{@dir}/control", "--error-log", log, app]).start
    wait_until("the server to be up") { File.exist?(log) && File.read(log).include?("listening on") }
    File.rename(log, "#{log}.1")
    @one.signal(:USR1)
    wait_until("another log") { File.exist?(log) }
    E2E.wait_until("the frontend in it") do
      ctl("certificates")
      File.read(log).include?("frontend: new certificates serve")
    end
  end

  def test_a_reload_without_certificates_speaks_of_none
    serve(address: FrontendServers::PLAIN_ADDRESS)
    2.times { assert_predicate ctl("reload").last, :success?, @one.stderr } # the second one comes behind what the first has told
    refute_includes @one.stderr, "certificates"
  end

  def test_the_sandbox_is_a_switch
    skip_without "sandbox of a frontend"
    serve("--no-frontend-sandbox")
    assert_equal %w[0 1], status_of(frontend).values_at("Seccomp", "NoNewPrivs")
    assert_match(/\A\d+\z/, curl("/pid"))
  end

  def test_a_frontend_has_a_user_of_its_own
    return skip("only root can give a frontend another user") unless Process.uid.zero?

    serve("--frontend-user", "nobody")
    nobody = Etc.getpwnam("nobody")
    assert_equal [nobody.uid, nobody.gid].map(&:to_s), status_of(frontend).values_at("Uid", "Gid")
    assert_equal 0, File.stat("/proc/#{frontend}/mem").uid, "its memory is for root alone" # proc(5): not dumpable
    assert_equal "x" * 100_000, curl("/echo", "--data-binary", "@#{@dir}/body".tap { File.write("#{@dir}/body", "x" * 100_000) })
    assert_match(/no such user|unknown user|no user/i, fails_to_start("--frontend-user", "nobody-of-that-name"))
  end

  # --- what the logs say ---

  def logged(file = "#{@dir}/access") = File.readlines(file).map { |line| JSON.parse(line) }

  def told(words) = @one.stderr.lines.map { |line| JSON.parse(line) }.find { |line| line["message"].match?(words) }

  # The lines of the one answer with this status: in the access log, and in the error log.
  def both_lines(status, words)
    wait_until("both lines: #{@one.stderr}") { logged.any? { |line| line["status"] == status } && told(words) }
    [logged.find { |line| line["status"] == status }, told(words)]
  end

  def served_with_logs(*options)
    serve("--access-log", "#{@dir}/access", "--access-log-format", "json", "--error-log-format", "json", "--workers", "1", *options)
  end

  # The worker's lines have the same id: the frontend has made it.
  def test_a_request_whose_worker_ends_has_one_id
    served_with_logs("--request-id")
    %w[--http1.1 --http2].each do |protocol|
      FileUtils.rm_f("#{@dir}/access") && @one.signal(:USR1) && wait_until("another log") { File.exist?("#{@dir}/access") }
      target = "/exit?#{protocol}"
      assert_match(/ 502/, curl(target, protocol, "-i", "-d", "x").lines.first)
      answered, failed = both_lines(502, /frontend: POST \/exit\?#{protocol} from 127\.0\.0\.1: the worker ended in the call; answering with 502/)
      assert_equal ["POST", target], answered.values_at("method", "target")
      assert_match(/\A\h{8}-\h{4}-7/, answered["request_id"])
      assert_equal answered["request_id"], failed["request_id"]
      died = wait_until("the supervisor's line: #{@one.stderr}") { told(/worker 0 .*POST #{Regexp.escape(target)}/) }
      assert_equal answered["request_id"], died["request_id"]
    end
  end

  def test_a_request_that_a_frontend_refuses_is_told_of_as_by_a_worker
    served_with_logs("--body-bytes-max", "1000")
    tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port)).connect
    tls.write("GET / HTTP/1.1\r\nHost: a\r\nbad field: 1\r\n\r\n")
    assert_match(/\AHTTP\/1.1 400/, tls.read)
    answered, refused = both_lines(400, /\Arequest from 127\.0\.0\.1 refused with 400: .*; closing its connection\z/)
    assert_match(/\A\h{8}-\h{4}-7/, answered["request_id"])
    assert_equal [answered["request_id"], "field"], [refused["request_id"], answered["refused"]]
    assert_match(/ 413/, curl("/echo", "--http1.1", "-i", "-d", "x" * 2000).lines.first)
    answered, refused = both_lines(413, /\Arequest from 127\.0\.0\.1 refused with 413: /)
    assert_equal ["POST", "/echo", "body_bytes_max"], answered.values_at("method", "target", "refused")
    assert_equal answered["request_id"], refused["request_id"]
    assert_match(/ 413/, curl("/upload?2", "--http2", "-i", "-d", "x" * 2000).lines.first)
    wait_until("both lines: #{@one.stderr}") { logged.size == 3 && told(/refused with 413: .*field "content-length: 2000"\z/) }
    assert_equal ["POST", "/upload?2", "HTTP/2", "body_bytes_max"], logged.last.values_at("method", "target", "protocol", "refused")
    assert_equal ["localhost", "curl"], [logged.last["host"], logged.last["user_agent"][/\w+/]]
  ensure
    tls&.close
  end

  def test_a_trusted_proxy_says_the_id
    served_with_logs("--request-id", "--trusted-proxies", "127.0.0.1")
    curl("/pid", "-H", "X-Request-Id: mine")
    wait_until("a line") { logged.any? }
    assert_equal "mine", logged.last["request_id"]
  end

  def test_plain_http_has_its_lines
    served_with_logs
    TCPSocket.open("127.0.0.1", @one.port) do |tcp|
      tcp.write("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_match(/\AHTTP\/1.1 400 .*https:/m, tcp.read)
    end
    answered, refused = both_lines(400, /\Arequest from 127\.0\.0\.1 refused with 400: HTTP without TLS.*"GET \/plain HTTP\/1\.1"/)
    assert_equal ["GET /plain HTTP/1.1", "request_line"], answered.values_at("line", "refused")
    assert_equal answered["request_id"], refused["request_id"]
  end

  def test_the_version_names_what_frontends_are_built_with
    version, = Open3.capture2(E2E::Server.binary, "--version")
    assert_match(/^frontend: OpenSSL 3\.\d+\.\d+\S*, nghttp2 1\.\d+\.\d+$/, version)
    version, = Open3.capture2({ "ORIBI_FRONTEND_PROGRAM" => "/nowhere" }, E2E::Server.binary, "--version")
    assert_match(/^frontend: none$/, version)
  end

  # The address is the one that the operator wrote.
  def test_an_address_is_called_tls_everywhere
    served_with_logs
    address = "tls://127.0.0.1:#{@one.port}"
    curl("/pid")
    plain_http
    wait_until("two lines") { logged.size == 2 }
    assert_equal [address], logged.map { |line| line["listener"] }.uniq
    assert_match(/\ATLSv1\.[23]\z/, logged.first["tls_protocol"])
    assert_match(/\ATLS_|\AECDHE-/, logged.first["tls_cipher"])
    assert_equal [address], told(/\Alistening on #{address},/)["addresses"]
    assert_match(/^listening on #{address} \(frontend, TLS\)$/, ctl("status").first)
    assert_equal [address], JSON.parse(ctl("status", "--json").first)["listeners"]
    assert_match(/cannot listen on #{address}: /, fails_to_start(address: "#{address}?certificate=#{@dir}/site.pem&key=#{@dir}/site.key"))
  end

  def plain_http
    TCPSocket.open("127.0.0.1", @one.port) { |tcp| tcp.write("GET / HTTP/1.1\r\n\r\n") && tcp.read }
  end

  def test_a_reload_changes_the_form_of_a_frontends_lines
    address = E2E::RUBY ? %(bind "tls://127.0.0.1:%{port}", certificate: "#{@dir}/site.pem", key: "#{@dir}/site.key"\n)
                        : %(bind 'tls://127.0.0.1:%{port}', certificate => '#{@dir}/site.pem', key => '#{@dir}/site.key';\n)
    serve_file(address + (E2E::RUBY ? %(error_log_format "json"\n) : %(error_log_format 'json';\n)))
    ctl("certificates")
    wait_until("a frontend's line") { told(/\Afrontend: new certificates serve\z/) }
    File.write("#{@dir}/oribi.#{E2E::RUBY ? "rb" : "pl"}", address.gsub("%{port}", @one.port.to_s))
    output, status = ctl("reload")
    assert status.success?, output
    ctl("certificates")
    wait_until("a line of text: #{@one.stderr}") { @one.stderr.match?(/oribi\[\d+\] info: frontend: new certificates serve$/) }
    pass
  end

  # --- renewal ---

  # As certbot leaves it: links in live/ to files with a number in archive/, and a hook once all links are new.
  class Certbot
    def initialize(dir)
      @dir = dir
      @number = 0
      FileUtils.mkdir_p(%w[archive live].map { |sub| "#{dir}/#{sub}/site" })
    end

    def renew(hook: nil)
      @number += 1
      made = Dir.mktmpdir { |dir| [FrontendServers.certificate(dir, "site"), File.read("#{dir}/site.pem"), File.read("#{dir}/site.key")] }
      { "fullchain" => made[1], "privkey" => made[2] }.each { |name, text| File.write("#{@dir}/archive/site/#{name}#{@number}.pem", text, perm: 0o600) }
      %w[fullchain privkey].each do |name|
        File.symlink("../../archive/site/#{name}#{@number}.pem", "#{@dir}/live/site/new")
        File.rename("#{@dir}/live/site/new", "#{@dir}/live/site/#{name}.pem")
      end
      output, status = Open3.capture2e({ "RENEWED_LINEAGE" => "#{@dir}/live/site", "RENEWED_DOMAINS" => "localhost" }, "sh", "-c", hook) if hook
      raise output if hook && !status.success?

      made[0].serial
    end
  end

  def test_the_hook_of_certbot
    certbot = Certbot.new(@dir)
    certbot.renew
    serve(address: "tls://127.0.0.1:%{port}?certificate=#{@dir}/live/site/fullchain.pem&key=#{@dir}/live/site/privkey.pem")
    hook = "#{E2E::Server.binary} ctl --control #{@dir}/control certificates"
    2.times { assert_equal certbot.renew(hook: hook), peer_certificate("localhost").serial }
    serial = certbot.renew(hook: "kill -HUP #{@one.pid}")
    wait_until("a reload takes it: #{@one.stderr}") { peer_certificate("localhost").serial == serial }
  end

  # lego writes over its files, and runs its hook behind that.
  def test_the_hook_of_lego
    FrontendServers.certificate(@dir, "example.org")
    FileUtils.mv("#{@dir}/example.org.pem", "#{@dir}/example.org.crt")
    serve(address: "tls://127.0.0.1:%{port}?certificate=#{@dir}/example.org.crt&key=#{@dir}/example.org.key")
    renewed = FrontendServers.certificate(@dir, "example.org")
    FileUtils.mv("#{@dir}/example.org.pem", "#{@dir}/example.org.crt")
    output, status = Open3.capture2e("sh", "-c", "#{E2E::Server.binary} ctl --control #{@dir}/control certificates")
    assert status.success?, output
    assert_equal renewed.serial, peer_certificate("localhost").serial
  end

  # No handshake fails while certificates change. ORIBI_SOAK: more of them, and a change each second.
  def test_handshakes_while_certificates_change
    serve("--frontends", "2")
    soak = ENV.fetch("ORIBI_SOAK", nil)
    changes = 0
    left = total = soak ? 20_000 : E2E::MORE_ROUNDS ? 2_000 : 500
    failed = []
    serials = {}
    lock = Mutex.new
    clients = Array.new(4) do
      Thread.new do
        while lock.synchronize { (left -= 1) >= 0 }
          begin
            serial = peer_certificate("localhost").serial
            lock.synchronize { serials[serial] = true }
          rescue StandardError => e
            lock.synchronize { failed << "#{e.class}: #{e.message}" }
          end
        end
      end
    end
    while clients.any?(&:alive?)
      changes += 1
      FrontendServers.certificate(@dir, "next")
      %w[key pem].each { |ext| File.rename("#{@dir}/next.#{ext}", "#{@dir}/site.#{ext}") }
      output, status = ctl("certificates")
      assert status.success?, output
      at = left
      soak ? sleep(1) : E2E.wait_until("fifty handshakes") { left <= at - 50 || clients.none?(&:alive?) }
    end
    clients.each(&:join)
    puts "#{total} handshakes, #{changes} changes, #{serials.size} certificates seen, #{failed.size} failed" if soak
    assert_empty failed.tally
    assert_operator serials.size, :>, 2
  end
end

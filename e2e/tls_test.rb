# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "net/http"

# The frontend: TLS, HTTP/2 and connections that outlive reloads. Certificates are made here.
E2E.suite("frontend", transports: %i[tcp]) do
  include FrontendServers
  include E2E::Gates

  def test_both_protocols_and_what_the_application_sees
    serve("--hsts", "300")
    { "--http1.1" => "HTTP/1.1", "--http2" => "HTTP/2" }.each do |flag, protocol|
      head = curl("/pid", "-i", flag)
      assert_match(/\A#{protocol} 200/, head)
      assert_match(/^strict-transport-security: max-age=300\r$/i, head)
      env = curl("/env", flag)
      ["HTTPS", "on", "SSL_PROTOCOL", "TLSv1.3", "SSL_TLS_SNI", "localhost", "https", protocol].each { |word| assert_includes env, word, flag }
    end
    assert_equal "x" * 300_000, curl("/echo", "--http2", "--data-binary", "@#{big_file(300_000)}")
    assert_equal "x" * 1000, curl("/echo", "--http1.1", "-H", "Transfer-Encoding: chunked", "--data-binary", "@#{big_file(1000)}")
    assert_equal 2_000_000, curl("/big?size=2000000", "--http2").bytesize
    assert_equal 2_000_000, curl("/big?size=2000000", "--http1.1").bytesize
  end

  # A worker keeps environments for clients of one kind.
  def test_the_application_sees_each_client_of_a_worker_by_itself
    serve("--workers", "1", "--bind", "tcp://127.0.0.1:#{port = E2E.free_port}")
    3.times do
      seen = [curl("/env", "--http1.1"), curl("/env", "--http2"), curl("/env", "--http1.1", "-k", name: "127.0.0.1"),
              Net::HTTP.get("127.0.0.1", "/env", port)]
      assert_equal [1, 1, 1, 0], seen.map { |env| env.scan(/TLS_AES\w+|TLS_CHACHA\w+/).size }
      assert_equal [1, 1, 0, 0], seen.map { |env| env.scan("SSL_TLS_SNI").size }
      assert_equal [0, 1, 0, 0], seen.map { |env| env.scan(/HTTP\/2\b/).size.clamp(0, 1) }
      assert_equal [1, 1, 1, 0], seen.map { |env| env.scan(/\bHTTPS\b/).size }
    end
  end

  def big_file(size) = "#{@dir}/#{size}".tap { |path| File.write(path, "x" * size) }

  def test_plain_http_is_told_so
    serve
    assert_match(/\AHTTP\/1.1 400 .*https:\/\//m, @one.connect.tap { |client| client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n") }.read_to_end)
  end

  def test_names_choose_certificates
    other = FrontendServers.certificate(@dir, "other", "DNS:other.test")
    serve("--certificate", "#{@dir}/other.pem,#{@dir}/other.key")
    assert_equal other.subject, peer_certificate("other.test").subject
    assert_equal "/CN=site", peer_certificate("a.example.test").subject.to_s
    assert_equal "/CN=site", peer_certificate("unknown.test").subject.to_s
  end

  # Of zeros there are some in each response.
  # Of an authority's certificate: OpenSSL 3.6 sends none for one that has signed itself.
  def write_stapled
    key = OpenSSL::PKey::EC.generate("prime256v1")
    authority = FrontendServers.certificate(@dir, "authority", key: key)
    certificate = FrontendServers.certificate(@dir, "site", by: "authority")
    File.write("#{@dir}/site.pem", certificate.sign(key, "SHA256").to_pem)
    basic = OpenSSL::OCSP::BasicResponse.new
    basic.add_status(OpenSSL::OCSP::CertificateId.new(certificate, authority), OpenSSL::OCSP::V_CERTSTATUS_GOOD, 0, nil, -60, 3600, [])
    basic.sign(authority, key)
    File.binwrite("#{@dir}/site.ocsp", OpenSSL::OCSP::Response.create(OpenSSL::OCSP::RESPONSE_STATUS_SUCCESSFUL, basic).to_der)
  end

  def test_ocsp_responses_are_stapled
    write_stapled
    serve(address: "#{bind}&ocsp=#{@dir}/site.ocsp")
    output, = Open3.capture2e(FrontendServers::PLAIN, "openssl", "s_client", "-connect", "127.0.0.1:#{@one.port}", "-status", stdin_data: "")
    assert_includes output, "OCSP Response Status: successful"
    assert_includes output, "Cert Status: good"
  end

  # Clients that ask for a response, and get something else, refuse the connection.
  def test_an_ocsp_response_that_is_none_is_an_error
    wrong = /site\.pem: its third file is no OCSP response \(DER\)/
    argv = [E2E::Server.binary, "--bind", "#{bind}&ocsp=#{@dir}/site.pem", "--no-dev", File.expand_path(E2E.differing(:app), E2E::ROOT)]
    one = E2E::Server.new(argv: argv).run_to_end
    assert_equal 1, one.wait.exitstatus
    assert_match wrong, one.stderr
    output, status = Open3.capture2e(E2E::Server.binary, "--check", *argv.drop(1).map { |word| word.gsub("%{port}", "0") })
    refute status.success?
    assert_match wrong, output
    test_ocsp_responses_are_stapled
    FileUtils.cp("#{@dir}/site.pem", "#{@dir}/site.ocsp")
    output, status = ctl("certificates")
    refute status.success?
    assert_match wrong, output
  ensure
    one&.cleanup
  end

  def test_renewed_certificates_end_no_connection
    serve
    before = peer_certificate("localhost").serial
    kept = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port)).connect
    ask(kept)
    FrontendServers.certificate(@dir, "site")
    output, status = ctl("certificates")
    assert status.success?, output
    refute_equal before, peer_certificate("localhost").serial
    ask(kept)
    now = peer_certificate("localhost").serial
    File.write("#{@dir}/site.key", OpenSSL::PKey::EC.generate("prime256v1").to_pem)
    output, status = ctl("certificates")
    refute status.success?
    refused = /site\.pem: the key is not this certificate's: the current ones stay in use$/
    assert_match refused, output
    assert_match(/error\S*: certificates: \S+#{refused}/, @one.stderr)
    assert_equal now, peer_certificate("localhost").serial
    output, status = ctl("reload")
    assert_equal 1, status.exitstatus, output
    assert_match(/generation 2, \d+ workers?; certificates: \S+#{refused}/, output)
    ask(kept)
    FrontendServers.certificate(@dir, "site", ends_s: -30)
    output, status = ctl("certificates")
    refute status.success?
    assert_match(/site\.pem: it has expired: the current ones stay in use$/, output)
    assert_equal now, peer_certificate("localhost").serial
    FrontendServers.certificate(@dir, "site", begins_s: -3600)
    output, status = ctl("certificates")
    assert status.success?, output
    assert_match(/new handshakes have the new certificates; warning: \S+site\.pem: it is not valid yet$/, output)
    output, status = ctl("reload")
    assert status.success?, output
    ask(kept)
  ensure
    kept&.close
  end

  def ask(tls)
    tls.write("GET /pid HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = tls.readpartial(4096)
    assert_match(/\AHTTP\/1.1 200/, head)
  end

  def test_wrong_files_end_the_start_with_one_line
    FileUtils.cp("#{@dir}/site.pem", "#{@dir}/other.pem")
    FrontendServers.certificate(@dir, "third")
    { "tls://127.0.0.1:%{port}" => /needs a certificate/, "tls://127.0.0.1:%{port}?certificate=#{@dir}/none.pem" => /none\.pem: no such file/,
      "tls://127.0.0.1:%{port}?certificate=#{@dir}/site.pem" => /site\.pem: its key cannot be read/,
      "tls://127.0.0.1:%{port}?certificate=#{@dir}/site.pem&key=#{@dir}/third.key" => /site\.pem: the key is not this certificate's/,
      "tls://127.0.0.1:%{port}?frontend=on" => /unknown option "frontend"/ }.each do |address, words|
      argv = [E2E::Server.binary, "--bind", address, "--no-dev", File.expand_path(E2E.differing(:app), E2E::ROOT)]
      one = E2E::Server.new(argv: argv).run_to_end
      assert_equal 1, one.wait.exitstatus, address
      assert_match words, one.stderr
      one.cleanup
    end
  end

  def test_client_certificates
    serve("--client-ca", "#{@dir}/site.pem", "--client-verify", "optional")
    assert_includes curl("/env"), "NONE"
    env = curl("/env", "--cert", "#{@dir}/site.pem", "--key", "#{@dir}/site.key")
    %w[SUCCESS SSL_CLIENT_S_DN CN=site].each { |word| assert_includes env, word }
  end

  def test_http2_by_prior_knowledge_and_http1_on_one_port
    serve(address: FrontendServers::PLAIN_ADDRESS)
    assert_match(/\A\d+\z/, curl("/pid", "--http2-prior-knowledge", scheme: "http"))
    assert_match(/\A\d+\z/, curl("/pid", "--http1.1", scheme: "http"))
  end

  # Connections of HTTP/2 stay through reloads, and a killed worker costs no request whose method is safe. ORIBI_SOAK:
  # 32 connections, 100,000 requests for each kind of event.
  # Whatever the client does: it may be one that never closes.
  def test_a_connection_that_the_application_has_closed_is_closed
    serve(address: FrontendServers::PLAIN_ADDRESS)
    before = E2E::Processes.descriptors(frontend).size
    client = E2E::Client.new(["127.0.0.1", @one.port])
    client.send_raw("GET /hijack-switches HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: bye\r\n\r\n")
    assert_match(/\AHTTP\/1\.1 101 .*\r\n\r\nbye\z/m, client.read_to_end)
    wait_until("the frontend to have closed the connection") { E2E::Processes.descriptors(frontend).size <= before }
  ensure
    client&.close
  end

  def test_trailers_of_a_request_are_none_of_its_answer
    serve(address: FrontendServers::PLAIN_ADDRESS)
    client = E2E::Client.new(["127.0.0.1", @one.port])
    client.send_raw("POST /hijack-unframed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n")
    assert_equal "unframed", client.read_response.body
    assert_equal "Hello, World!", client.get("/").body
  ensure
    client&.close
  end

  def test_no_request_is_lost_by_reloads
    counts = loaded { reload }
    assert_equal counts[:total], counts[:succeeded], "#{counts} #{@one.stderr}"
    assert_equal 0, @one.stderr.scan("the worker ended in the call").size
  end

  def test_no_request_is_lost_by_killed_workers
    counts = loaded { kill_worker }
    assert_equal counts[:total], counts[:succeeded], "#{counts} #{@one.stderr}"
  end

  # What may not be made twice, and was sent to a worker that died: it has made it, or has not. Each worker has
  # threads and what waits there for a moment, 16 short calls.
  def test_only_what_a_killed_worker_had_is_lost_of_unsafe_methods
    File.write("#{@dir}/posted", "x" * 100)
    kills = 0
    counts = loaded("-d", "#{@dir}/posted") { (kills += 1) && kill_worker }
    assert_equal counts[:total], counts[:done], "an answer for each: #{counts} #{@one.stderr}"
    assert_operator counts[:failed], :<=, 16 * kills, @one.stderr
    warn "#{counts[:failed]} of #{counts[:total]} posts were with the #{kills} workers that were killed" if SOAK
  end

  SOAK = ENV.key?("ORIBI_SOAK")
  LOAD = SOAK ? %w[-c 32 -m 4 -n 100000 --rps 50] : %w[-c 8 -m 4 -n 4000 --rps 400]
  EVENTS = SOAK ? Float::INFINITY : 3

  # The counts of h2load while something happens, each second in the long form.
  def loaded(*words)
    serve("--workers", "2")
    events = 0
    under_load(*LOAD, *words) do |goes_on|
      while events < EVENTS && goes_on.call
        yield
        events += 1
        sleep 1 if SOAK
      end
    end
  end

  def reload
    output, status = ctl("reload")
    assert status.success?, output
  end

  def kill_worker = Process.kill(:KILL, curl("/pid", "--http1.1").to_i)

  def test_a_frontend_that_dies_is_started_again_and_a_stop_leaves_none
    serve
    first = frontend
    Process.kill(:KILL, first)
    E2E.wait_until("another frontend: #{@one.stderr}") { frontend && frontend != first && @one.stderr.include?("serves again") }
    curl("/pid", "--http2")
    assert_match(/frontend 0 \(pid #{first}\) ended: signal 9/, @one.stderr)
    @one.signal(:TERM)
    assert_equal 0, @one.wait.exitstatus
  end

  def another_frontend
    first = frontend
    Process.kill(:KILL, first)
    E2E.wait_until("another frontend: #{@one.stderr}") { @one.stderr.scan("serves again").size > @again.to_i }
    @again = @again.to_i + 1
    refute_equal first, frontend
  end

  # certbot: live/ has links into archive/, which a renewal switches; only root may look into either.
  def certbot_files(number)
    archive, live = %w[archive live].map { |name| "#{@dir}/letsencrypt/#{name}/example.org" }
    FileUtils.mkdir_p([archive, live])
    { "fullchain" => "site.pem", "privkey" => "site.key" }.each do |name, from|
      FileUtils.cp("#{@dir}/#{from}", "#{archive}/#{name}#{number}.pem")
      FileUtils.ln_sf("../../archive/example.org/#{name}#{number}.pem", "#{live}/#{name}.pem")
    end
    { "RENEWED_LINEAGE" => live }
  end

  # lego writes over its files.
  def lego_files(_number)
    FileUtils.mkdir_p("#{@dir}/lego")
    FileUtils.cp("#{@dir}/site.pem", "#{@dir}/lego/example.org.crt")
    FileUtils.cp("#{@dir}/site.key", "#{@dir}/lego/example.org.key")
    { "LEGO_CERT_PATH" => "#{@dir}/lego/example.org.crt", "LEGO_CERT_KEY_PATH" => "#{@dir}/lego/example.org.key" }
  end

  # The page's hook, told where this server is.
  def hook(env)
    text = File.read(File.join(E2E::ROOT, "doc/tls.md"))[/^```sh\n(#!\/bin\/sh\n.*?)^```$/m, 1] or flunk "no hook"
    File.write("#{@dir}/hook", text.gsub("/etc/oribi/tls", "#{@dir}/tls").gsub("chgrp oribi", "chgrp #{Process.gid}")
                                   .gsub("oribi ctl @site", "#{E2E::Server.binary} ctl --control #{@dir}/control"), perm: 0o755)
    output, status = Open3.capture2e(env, "#{@dir}/hook")
    assert status.success?, output
    output
  end

  %i[certbot_files lego_files].each do |layout|
    define_method("test_the_pages_hook_from_the_first_certificate_on_with_#{layout}") do
      serve(address: "tcp://127.0.0.1:%{port}")
      assert_equal "no address speaks TLS: no certificate is read\n", hook(send(layout, 1))
      assert_equal 0o640, File.stat("#{@dir}/tls/site.pem").mode & 0o777
      @one.cleanup
      serve(address: "tls://127.0.0.1:%{port}?certificate=#{@dir}/tls/site.pem")
      first = peer_certificate("localhost").serial
      FrontendServers.certificate(@dir, "site")
      assert_equal "new handshakes have the new certificates\n", hook(send(layout, 2))
      refute_equal first, peer_certificate("localhost").serial
      assert_empty Dir["#{@dir}/tls/*.new"]
    end
  end

  # Each frontend says why it refuses: the second one's words are not taken for its answer to what comes next.
  def test_what_frontends_have_refused_is_forgotten
    serve("--frontends", "2")
    good = File.read("#{@dir}/site.key")
    5.times do
      File.write("#{@dir}/site.key", OpenSSL::PKey::EC.generate("prime256v1").to_pem)
      refute ctl("certificates").last.success?
      File.write("#{@dir}/site.key", good)
      output, status = ctl("certificates")
      assert status.success?, output
    end
    File.write("#{@dir}/site.key", "half")
    refute ctl("certificates").last.success?
    File.write("#{@dir}/site.key", good)
    Process.kill(:KILL, frontend_pids.first)
    wait_until("the frontend's end") { @one.stderr.include?("serves again") }
    assert_match(/ended: signal 9$/, @one.stderr)
  end

  def test_a_frontend_that_dies_while_it_is_asked_owes_no_answer
    serve("--frontends", "2")
    slow = frontend_pids.first
    Process.kill(:STOP, slow)
    asked = Thread.new { ctl("certificates") }
    wait_until("the other's") { @one.stderr.include?("new certificates serve") }
    Process.kill(:KILL, slow)
    output, status = asked.value
    assert status.success?, output # a frontend that owes one until the time is over makes it fail
  ensure
    asked&.join
  end

  # Whatever has become of the files meanwhile.
  def test_a_frontend_that_is_started_again_has_what_served_last
    serve
    serials = [peer_certificate("localhost").serial]
    others = @one.descendants - [frontend]
    key = File.read("#{@dir}/site.key").lines[1]
    others.each { |pid| refute FrontendServers.memory_has?(pid, key), "the key is in #{pid}" } if Process.uid.zero?
    File.rename("#{@dir}/site.pem", "#{@dir}/away.pem")
    another_frontend
    assert_equal serials, [peer_certificate("localhost").serial]
    assert_match(/warn\S*: frontend 0 starts with the certificates that served last: cannot read #{@dir}\/site\.pem: no such file/, @one.stderr)
    File.rename("#{@dir}/away.pem", "#{@dir}/site.pem")
    File.write("#{@dir}/site.key", OpenSSL::PKey::EC.generate("prime256v1").to_pem)
    another_frontend
    assert_equal serials, [peer_certificate("localhost").serial]
    assert_match(/frontend 0 starts with the certificates that served last: \S+site\.pem: the key is not this certificate's/, @one.stderr)
    FrontendServers.certificate(@dir, "site", ends_s: -30)
    another_frontend
    assert_equal serials, [peer_certificate("localhost").serial]
    assert_match(/frontend 0 starts with the certificates that served last: \S+site\.pem: it has expired/, @one.stderr)
    renewed = FrontendServers.certificate(@dir, "site")
    another_frontend
    File.delete("#{@dir}/site.pem")
    another_frontend
    assert_equal renewed.serial, peer_certificate("localhost").serial
  end

  def test_without_a_frontend_the_server_is_not_ready
    program = "#{@dir}/oribi-frontend"
    FileUtils.cp(File.join(E2E::ROOT, E2E::RUBY ? "ruby/lib/oribi/oribi-frontend" : "perl/blib/arch/auto/Oribi/oribi-frontend"), program)
    status = E2E.free_port
    ready = -> { Net::HTTP.get_response(URI("http://127.0.0.1:#{status}/ready")).then { |answer| [answer.code, answer.body] } }
    serve("--status", "127.0.0.1:#{status}", env: { "ORIBI_FRONTEND_PROGRAM" => program })
    assert_equal ["200", "ready\n"], ready.call
    assert_match(/\A[^\n]*, serving, generation 1/, ctl("status").first)
    File.rename(program, "#{program}.away")
    Process.kill(:KILL, frontend)
    wait_until("no frontend to serve") { ready.call == ["503", "not ready: no frontend serves\n"] }
    assert_match(/\A[^\n]*, no frontend serves, generation 1/, ctl("status").first)
    File.rename("#{program}.away", program)
    wait_until("a frontend to serve") { ready.call == ["200", "ready\n"] }
    Process.kill(:STOP, stopped = frontend)
    wait_until("the frontend to stand still") { ready.call == ["503", "not ready: no frontend serves\n"] }
    assert_match(/^frontend 0, pid #{stopped}, stopped, /, ctl("status").first)
    assert_match(/^frontends    0 of 1 serve  /, ctl("top").first)
    Process.kill(:CONT, stopped)
    wait_until("the frontend to go on") { ready.call == ["200", "ready\n"] }
    assert_match(/^frontends    1 of 1 serve  0 open  0 HTTP\/2  0 streams  0 with workers  handshakes 0\/s$/, ctl("top").first)
  end

  def test_an_upgrade_ends_the_old_frontend_without_a_loss
    serve(group: true)
    old = frontend
    counts = under_load("-c", "4", "-m", "2", "-n", "4000", "--rps", "400") do
      output, status = ctl("upgrade")
      assert status.success?, output
      E2E.wait_until("the old frontend to end") { !E2E::Processes.alive?(old) }
    end
    assert_operator counts[:done], :>, 0
    assert_equal 0, @one.wait.exitstatus
    curl("/pid", "--http2")
  end

  # A reload cannot give a frontend another address, and says so; an upgrade does.
  def test_a_reload_that_changes_a_frontends_address_is_refused
    config = File.join(@dir, E2E::RUBY ? "oribi.rb" : "oribi.pl")
    write = ->(address) { File.write(config, E2E::RUBY ? "bind #{address.inspect}\n" : "+{ bind => '#{address}' };\n") }
    port = E2E.free_port
    write.("127.0.0.1:#{port}")
    argv = [E2E::Server.binary, "-C", config, "--no-dev", "--control", "#{@dir}/control", File.expand_path(E2E.differing(:app), E2E::ROOT)]
    @one = E2E::Server.new(argv: argv, group: true)
    @one.instance_variable_set(:@address, ["127.0.0.1", port])
    @one.start
    wait_until("the server to be up") { @one.stderr.include?("listening on") }
    write.("tcp://127.0.0.1:#{port}?frontend=on")
    output, status = ctl("reload")
    refute status.success?
    assert_match(/what a frontend listens on .* is changed by an upgrade/, output)
    assert_includes output, "the new configuration cannot be taken over: tcp://127.0.0.1:#{port}: "
    refute_includes @one.stderr, "did not load"
    write.("tls://127.0.0.1:#{port}?certificate=#{@dir}/site.pem&key=#{@dir}/site.key")
    assert_includes ctl("reload").first, "the new configuration cannot be taken over: tls://127.0.0.1:#{port}: "
    write.("tcp://127.0.0.1:#{port}?frontend=on")
    assert_match(/\A\d+\z/, @one.get("/pid").body)
    output, status = ctl("upgrade")
    assert status.success?, output
    assert_match(/\A\d+\z/, curl("/pid", "--http2-prior-knowledge", scheme: "http"))
    output, = ctl("status")
    assert_match(/^listening on \S+ \(frontend\)\nfrontend 0, pid \d+, serving, \d+ open, 1 request, 0 answered by itself$/, output)
  end

  # A worker that has written all while the frontend stood still says nothing more: the frontend reads on by itself,
  # however much it is. Sizes are those that a turn cannot read, and a socket holds.
  def test_an_answer_that_waits_whole_is_read_to_its_end
    serve("--workers", "1", address: FrontendServers::PLAIN_ADDRESS)
    worker = @one.worker_pid
    (0..9).each do |i|
      size = 1_050_000 + 500 * i
      client = @one.connect.tap { |one| one.send_raw("GET /big?size=#{size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }
      Process.kill(:STOP, frontend)
      wait_until("the worker to be done") { E2E::Processes.asleep?(worker) }
      Process.kill(:CONT, frontend)
      assert_equal size, client.read_response.body.bytesize
    end
  end

  # One connection, two streams, two workers of one call at a time.
  def test_streams_of_one_connection_run_at_the_same_time
    serve("--workers", "2")
    targets = %w[a b].map { |name| "https://127.0.0.1:#{@one.port}/gate?name=#{name}" }
    load = Process.spawn(FrontendServers::PLAIN, "h2load", "-n", "2", "-c", "1", "-m", "2", *targets, out: File::NULL, err: File::NULL)
    wait_until("both calls: #{@one.stderr}") { %w[a b].all? { |name| entered?(@one, name) } }
    open_gate(@one, "a", "b")
    wait_until("h2load to end") { Process.waitpid(load, Process::WNOHANG) }
  end
end

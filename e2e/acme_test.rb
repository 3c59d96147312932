# frozen_string_literal: true

require_relative "support"
require_relative "support/acme_authority"
require_relative "support/frontends"
require_relative "support/handshakes"
require_relative "support/namespaces"
require "json"
require "net/http"
require "open3"

# Certificates that come by themselves: the option acme, against a real authority and against clients that fail.
E2E.suite("acme", transports: %i[tcp]) do
  include FrontendServers

  def setup
    super
    @http = E2E.free_port
    @status = E2E.free_port
    @acme = "#{@dir}/acme"
    @others = []
  end

  def teardown
    @others.each(&:cleanup)
    @authority&.stop
    super
  end

  def authority(**more)
    skip AcmeAuthority.refused if AcmeAuthority.refused
    @authority = AcmeAuthority.new(@dir, http_port: @http, **more).start
  end

  # A client that is a shell script; $1 is its last word but one.
  def client(script)
    path = "#{@dir}/client"
    File.write(path, "#!/bin/sh\necho \"$*\" >>#{@dir}/client.calls\n#{script}\n", perm: 0o755)
    path
  end

  def calls = File.exist?("#{@dir}/client.calls") ? File.readlines("#{@dir}/client.calls") : []

  def words(names, command, directory, user: Process.uid.zero? ? %w[--acme-user root] : [])
    ["--bind", "tls://127.0.0.1:%{port}", "--bind", "tcp://127.0.0.1:#{@http}?frontend=on", "--no-dev", "--status", "127.0.0.1:#{@status}",
     *Array(names).flat_map { |name| ["--acme", name] }, "--acme-terms", "--acme-dir", @acme, "--acme-command", command,
     "--acme-directory", directory, *user]
  end

  def command(words, control) = [E2E::Server.binary, "--control", control, *words, File.expand_path(E2E.differing(:app), E2E::ROOT)]

  def serve_acme(names, command, directory = "https://localhost:1/dir", *options, **more)
    @one = E2E::Server.new(argv: command(words(names, command, directory) + options, "#{@dir}/control"), **more).start
    wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
    @one
  end

  def said(text, one = @one)
    wait_until(text.inspect) { one.stderr[text] }
  rescue E2E::Timeout => e
    raise e.class, "#{e.message}: #{one.stderr}"
  end
  def issuer(name) = peer_certificate(name).issuer.to_s
  def status(path) = Net::HTTP.get(URI("http://127.0.0.1:#{@status}#{path}"))
  def acme_json = JSON.parse(status("/status.json")).fetch("acme")
  def metric(name) = status("/metrics")[/^#{name} (\S+)/, 1]&.to_f

  def test_the_first_certificate_of_two_names
    authority
    serve_acme("a.test,www.a.test?email=me@a.test", @authority.client, @authority.directory)
    said("certificate of a.test: issued for a.test,www.a.test")
    wait_until("the certificate") { issuer("www.a.test").include?("Pebble") }
    wait_until("no placeholder") { status("/ready") == "ready\n" }
    one = acme_json.first
    assert_equal ["a.test", "good", false, 0, ""], one.values_at("name", "state", "placeholder", "failures", "reason")
    life = one["valid_to"] - one["valid_from"]
    assert_operator one["next_order"], :>=, one["valid_to"] - life / 3 - 1
    assert_operator one["next_order"], :<, one["valid_to"] - life / 4
    assert_equal [1.0, 0.0, 0.0], [metric("oribi_acme_orders_total"), metric("oribi_acme_failures_total"), metric("oribi_acme_placeholders")]
    output, code = ctl("certificates")
    assert code.success?, output
    assert_match(/^a\.test +good +\d{4}-\d\d-\d\d \d\d:\d\d UTC/, output)
    assert_equal %w[600 600], ["a.test.pem", "a.test.state"].map { |file| File.stat("#{@acme}/#{file}").mode.to_s(8)[-3..] }
    assert_equal "404", Net::HTTP.get_response(URI("http://127.0.0.1:#{@http}/.well-known/acme-challenge/#{"a" * 43}")).code
    assert_equal 1, @authority.orders
    refute_match(/error/, @one.stderr)
  end

  # Without an address: 443 and 80, where everything but the authority is sent to HTTPS.
  def test_one_line_on_the_usual_ports
    skip E2E::Namespaces.refused if E2E::Namespaces.refused
    @http = 80
    authority
    @status = nil
    argv = [E2E::Server.binary, "--acme", "a.test,www.a.test?email=me@a.test", "--acme-terms", "--no-dev", "--control", "#{@dir}/control",
            *(Process.uid.zero? ? %w[--acme-user root] : []), "--acme-dir", @acme, "--acme-command", @authority.client, "--acme-directory",
            @authority.directory, File.expand_path(E2E.differing(:app), E2E::ROOT)]
    @one = E2E::Server.new(argv: argv)
    @one.instance_variable_set(:@address, ["127.0.0.1", 443])
    @one.start
    said("certificate of a.test: issued for a.test,www.a.test")
    wait_until("the certificate") { issuer("www.a.test").include?("Pebble") }
    answer = Net::HTTP.get_response(URI("http://127.0.0.1/pid?x=1"), { "Host" => "www.a.test" })
    assert_equal ["301", "https://www.a.test/pid?x=1"], [answer.code, answer["Location"]]
  end

  # The connection that was made under the placeholder goes on, and is asked once more.
  def test_a_placeholder_serves_until_the_first_one_has_come
    authority
    go = "#{@dir}/go"
    slow = "#{@dir}/slow"
    File.write(slow, "#!/bin/sh\nwhile [ ! -e #{go} ]; do sleep 0.05; done\nexec #{@authority.client} \"$@\"\n", perm: 0o755)
    serve_acme(%w[a.test b.test], slow, @authority.directory)
    assert_equal "/CN=Oribi placeholder", issuer("a.test")
    assert_equal "/CN=Oribi placeholder", issuer("b.test")
    wait_until("the placeholders to be known") { status("/ready") == "ready; a placeholder serves for 2 certificates\n" }
    assert_equal 2.0, metric("oribi_acme_placeholders")
    output, code = ctl("certificates")
    assert code.success?, output
    assert_match(/^no certificate has been issued yet: new handshakes have a self-signed placeholder$/, output)
    refute_match(/new certificates/, output)
    tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @one.port)).tap(&:connect)
    ask = -> { tls.write("GET /pid HTTP/1.1\r\nHost: a.test\r\n\r\n") && tls.readpartial(4096) }
    assert_match(/\AHTTP.1.1 200/, ask.call)
    FileUtils.touch(go)
    said("certificate of b.test: issued")
    wait_until("both certificates") { [issuer("a.test"), issuer("b.test")].all?(/Pebble/) }
    assert_match(/\AHTTP.1.1 200/, ask.call)
    assert_equal "ready\n", status("/ready")
  ensure
    tls&.close
  end

  SOAK = ENV.key?("ORIBI_SOAK")

  # Lives of 12 s: three renewals, and no handshake fails. ORIBI_SOAK: 20,000 handshakes, and five renewals at least.
  def test_handshakes_during_renewals
    authority(life_s: 12)
    serve_acme("a.test", @authority.client, @authority.directory, "--frontends", "2")
    said("issued for a.test")
    wait_until("the certificate") { issuer("a.test").include?("Pebble") }
    shaking = E2E::Handshakes.new(@one.port, "a.test")
    handshakes, swaps = SOAK ? [20_000, 5] : [40, 3]
    wait_until("renewals", seconds: SOAK ? 600 : 90) { shaking.serials.size > swaps && shaking.total >= handshakes }
    assert_empty shaking.stop.tally
    serials = shaking.serials.size
    puts "#{shaking.total} handshakes, #{serials - 1} swaps, none failed: #{shaking.counts}" if SOAK
    assert_equal E2E::Handshakes::VERSIONS.size * 2, shaking.counts.size, "whole and resumed ones of each version: #{shaking.counts}"
    assert_operator @authority.orders, :<=, serials + 1, "no busy asking"
    assert_equal 0.0, metric("oribi_acme_failures_total")
    assert_equal @one.stderr.scan("serves on").size, @one.stderr.scan("asking").size - 1
  ensure
    shaking&.stop
  end

  # A tenth of all requests is refused for its nonce, and the authority takes its time: the client tries again. Where it
  # gives up, its words are told.
  def test_an_authority_that_refuses_nonces_and_is_slow
    authority(nonce_reject: 10, slow: true)
    serve_acme("a.test,b.test", @authority.client, @authority.directory)
    said(/certificate of a.test: (issued|not issued: \S+)/)
    if @one.stderr.include?("not issued")
      assert_match(/nonce/i, @one.stderr)
    else
      wait_until("the certificate") { issuer("b.test").include?("Pebble") }
    end
    assert_equal 1, @authority.orders
  end

  def test_an_authority_that_refuses_all_nonces
    authority(nonce_reject: 100)
    serve_acme("a.test", @authority.client, @authority.directory)
    assert_match(/nonce.*; a self-signed placeholder serves; next try at/i, said(/not issued: .*/))
    assert_equal ["failed", 1], acme_json.first.values_at("state", "failures")
  end

  def test_an_authority_that_issues_nothing_for_the_name
    authority(blocked: ["a.test"])
    serve_acme("a.test", @authority.client, @authority.directory)
    assert_match(/rejectedIdentifier|policy/i, said(/not issued: .*/))
  end

  def test_an_authority_that_is_away
    authority
    @authority.stop_pebble
    serve_acme("a.test", @authority.client, @authority.directory)
    assert_match(/; a self-signed placeholder serves; next try at/, said(/not issued: .*/))
    assert_equal 0, metric("oribi_acme_placeholders") - 1
    assert_equal 200, Net::HTTP.get_response(URI("http://127.0.0.1:#{@status}/ready")).code.to_i
  end

  # A quarter, by a clock that restarts put forward: before the last third nobody asks, in it the certificate is
  # renewed, and at its end, when the authority's clock is far behind, what serves goes on.
  def test_a_quarter
    authority
    serials = { 0 => 1, 59 => 1, 69 => 2 }.map do |days, orders|
      serve_acme("a.test", @authority.client, @authority.directory, env: { "ORIBI_ACME_CLOCK" => (days * 86_400).to_s })
      wait_until("the plan after #{days} days: #{@one.stderr}") do
        @authority.orders == orders && acme_json.first["state"] == "good"
      end
      wait_until("the certificate") { issuer("a.test").include?("Pebble") }
      serial = OpenSSL::X509::Certificate.new(File.read("#{@acme}/a.test.pem")).serial
      wait_until("that of the file") { peer_certificate("a.test").serial == serial }
      @one.stop
      serial
    end
    assert_equal serials[0], serials[1]
    refute_equal serials[1], serials[2]
    serve_acme("a.test", @authority.client, @authority.directory, env: { "ORIBI_ACME_CLOCK" => (95 * 86_400).to_s })
    assert_match(/error: .*is this machine's clock right.*serves on/, said(/^.*not issued: .*/))
    assert_equal serials[2], peer_certificate("a.test").serial
  end

  # No room for the account's key and the new certificate: the server goes on. The folder is a file
  # system of 64 KiB that the server's own mount namespace has.
  def test_a_full_disk
    authority
    FileUtils.mkdir(@acme)
    go = "#{@dir}/go"
    slow = "#{@dir}/slow"
    File.write(slow, "#!/bin/sh\necho \"$*\" >>#{@dir}/slow.calls\nwhile [ ! -e #{go} ]; do sleep 0.05; done\n" \
                     "exec #{@authority.client} \"$@\"\n", perm: 0o755)
    mounts = [*AcmeAuthority.unshare, "sh", "-c", "mount -t tmpfs -o size=64k,mode=755 none #{@acme} && exec \"$@\"", "sh"]
    @one = E2E::Server.new(argv: mounts + command(words("a.test", slow, @authority.directory), "#{@dir}/control")).start
    wait_until("the order: #{@one.stderr}") { File.exist?("#{@dir}/slow.calls") }
    File.open("/proc/#{@one.pid}/root#{@acme}/filler", "w") { |file| fill(file) }
    FileUtils.touch(go)
    said(/not issued: .+; a self-signed placeholder serves/)
    assert_equal ["failed", true], acme_json.first.values_at("state", "placeholder")
    assert_equal "/CN=Oribi placeholder", issuer("a.test")
  end

  # Such a disk has left an empty key of the account behind (uacme 1.7.4 does not get over that).
  def test_an_account_with_an_empty_key
    authority
    folder = "#{@acme}/account/localhost_#{URI(@authority.directory).port}/private"
    FileUtils.mkdir_p(folder)
    FileUtils.touch("#{folder}/key.pem")
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
  end

  def fill(file)
    file.sync = true
    loop { file.syswrite("x" * 512) }
  rescue Errno::ENOSPC
    nil
  end

  def test_a_name_that_leads_elsewhere
    authority
    @authority.hide("b.test")
    serve_acme("a.test,b.test", @authority.client, @authority.directory)
    said("certificate of a.test: not issued: ")
    line = @one.stderr[/not issued: .*/]
    assert_match(/b\.test.*; .*port 80.*; a self-signed placeholder serves; next try at \d{4}-/, line)
    assert_equal ["failed", true, 1], acme_json.first.values_at("state", "placeholder", "failures")
    assert_in_delta Time.now.to_i + 3600, acme_json.first["next_order"], 120
    3.times { ctl("certificates") }
    assert_equal 1, @authority.orders
    assert_match(/^a\.test +failed .*port 80/, ctl("certificates").first)
    @authority.show("b.test")
    output, code = ctl("certificates", "--renew")
    assert code.success?, output
    assert_match(/asking for 1 certificate/, output)
    assert_equal 1, @authority.orders, "not before a minute has passed"
    assert_match(/"state":"failed"/, status("/status.json"))
  end

  # After the key was stolen, as doc/tls.md has it: the client revokes and renames the file.
  def test_a_certificate_that_was_revoked
    authority
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
    before = OpenSSL::X509::Certificate.new(File.read("#{@acme}/a.test.pem"))
    account = Dir["#{@acme}/account/*"].first
    output, code = Open3.capture2e(@authority.client, "-a", @authority.directory, "-c", account, "revoke", "#{@acme}/a.test.pem")
    assert code.success?, output
    refute_path_exists "#{@acme}/a.test.pem"
    @one.signal(:USR2)
    wait_until("a new certificate: #{@one.stderr}") { @one.stderr.scan("issued for a.test").size == 2 }
    wait_until("the new one") { peer_certificate("a.test").serial != before.serial }
  end

  def test_an_authority_that_loses_accounts_and_comes_back
    authority
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
    @one.stop
    @authority.stop_pebble
    @authority.start_pebble
    File.unlink("#{@acme}/a.test.pem")
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
  end

  # The authority issues what a clock that is a year ahead takes for expired.
  def test_a_clock_that_is_a_year_ahead
    authority
    serve_acme("a.test", @authority.client, @authority.directory, env: { "ORIBI_ACME_CLOCK" => (366 * 86_400).to_s })
    said("is not valid now: is this machine's clock right?")
    assert_equal "/CN=Oribi placeholder", issuer("a.test")
  end

  def test_clients_that_fail
    { "exit 3" => /has failed without a word/, "exit 0" => /left no certificate/, "kill -9 $$" => /was killed/,
      "printf '{\"type\":\"urn:ietf:params:acme:error:malformed\",\"detail\":\"bad '; yes | tr -d '\\n' | head -c 300000; echo '\"}'; exit 2" =>
        /not issued: malformed: bad yyy/,
      "yes | head -c 300000; echo 'uacme: in the end' >&2; exit 2" => /not issued: in the end/,
      "echo \"uacme: what is \\\"this\\\"\" >&2; exit 2" => /not issued: what is "this"/,
      "printf 'x\\033[31m\\200y\\n' >&2; exit 2" => /not issued: x\?\[31m\?y/,
      "case \"$*\" in *new*) exit 0;; esac; r=$(echo \"$*\" | sed 's/.* //'); echo nonsense >${r%.csr}-cert.pem" => /cannot be used: /,
      "case \"$*\" in *new*) exit 0;; esac; r=$(echo \"$*\" | sed 's/.* //'); cp #{@dir}/site.pem ${r%.csr}-cert.pem" => /cannot be used: .*key is not this/ }
      .each do |script, reason|
      serve_acme("a.test", client(script))
      said(reason)
      assert_equal "/CN=Oribi placeholder", issuer("a.test")
      assert_equal 1, acme_json.first["failures"]
      @one.cleanup
      FileUtils.rm_rf(@acme)
    end
  end

  # Children of a client end with it, unless they have left its group.
  def test_a_client_that_leaves_processes_behind
    serve_acme("a.test", client("sleep 1000 & echo $! >#{@dir}/left; setsid yes & exit 2"))
    said("not issued")
    left = File.read("#{@dir}/left").to_i
    wait_until("the process to end") { !File.exist?("/proc/#{left}") || File.read("/proc/#{left}/stat")[/\) Z/] }
  end

  def test_a_client_that_takes_all_memory
    skip "sanitizers take memory of their own" if ENV.key?("ASAN_OPTIONS") || ENV.key?("TSAN_OPTIONS")
    serve_acme("a.test", client("exec perl -e 'my $n = 2_000_000_000; my $x = q(a) x $n; exit 2'"))
    said(/not issued: .*Out of memory/)
  end

  def test_a_client_that_is_not_there
    serve_acme("a.test", "no-such-client --x")
    said("no-such-client is not installed: apt-get install uacme, or set acme_command")
  end

  # A failure is written before the client is asked: a start does not ask again before its time.
  def test_restarts_do_not_ask_again
    serve_acme("a.test", client("exit 2"))
    said("not issued")
    asked = calls.size
    3.times do
      @one.stop
      serve_acme("a.test", "#{@dir}/client")
      wait_until("a look") { acme_json.first["state"] == "failed" }
      assert_match(/without a word/, acme_json.first["reason"])
    end
    assert_equal asked, calls.size
  end

  # The authority's client, which waits for that file.
  def gated(file) = client("while [ ! -e #{@dir}/#{file} ]; do sleep 0.05; done; exec #{@authority.client} \"$@\"")

  # Of an order, or of a look.
  def program = @one.descendants.find { |pid| File.read("/proc/#{pid}/cmdline").split("\0")[1] == "--acme" rescue nil }

  def reload
    before = JSON.parse(status("/status.json"))["generation"]
    @one.signal(:HUP)
    wait_until("the reload: #{@one.stderr}") { JSON.parse(status("/status.json")).values_at("generation", "state") == [before + 1, "serving"] }
  end

  # An authority that takes its time finds its answers whatever generation serves.
  def test_reloads_in_an_order
    authority(slow: true)
    serve_acme("a.test,b.test", gated("go"), @authority.directory)
    wait_until("the order") { calls.any? }
    reload
    FileUtils.touch("#{@dir}/go")
    until @one.stderr.match?(/issued/)
      reload
      sleep(0.5) unless E2E::MORE_ROUNDS # each reload loads the application: without a pause they take a processor
    end
    wait_until("the certificate") { issuer("b.test").include?("Pebble") }
    assert_equal 1, @one.stderr.scan("asking").size, "one order"
  end

  # A reload, and the death of the program that orders, three times: what serves goes on, and so do its clients; in the
  # end the certificate is renewed. The back-off of such a short life is some seconds.
  def test_reloads_and_deaths_in_orders
    authority(life_s: 18)
    go = "#{@dir}/go"
    FileUtils.touch(go)
    serve_acme("a.test", gated("go"), @authority.directory)
    said("issued for a.test")
    wait_until("the certificate") { issuer("a.test").include?("Pebble") }
    before = [peer_certificate("a.test").serial, frontend]
    FileUtils.rm(go)
    shaking = E2E::Handshakes.new(@one.port, "a.test", each: 1)
    1.upto(3) do |deaths|
      wait_until("order #{deaths + 1}", seconds: 90) { @one.stderr.scan("asking").size == deaths + 1 && program }
      reload
      Process.kill(:KILL, program)
      wait_until("death #{deaths}") { @one.stderr.scan("has ended early").size == deaths }
    end
    FileUtils.touch(go)
    wait_until("the renewal: #{@one.stderr}", seconds: 90) { @one.stderr.scan("issued for a.test").size == 2 }
    wait_until("the new one") { peer_certificate("a.test").serial != before[0] }
    assert_empty shaking.stop.tally
    assert_equal before[1], frontend
    assert_equal ["good", 0], acme_json.first.values_at("state", "failures")
    wait_until("all clients to end") { @one.descendants.none? { |pid| File.read("/proc/#{pid}/cmdline").include?("uacme") rescue nil } }
  ensure
    shaking&.stop
  end

  # Whoever dies in an order: the server goes on, and it counts as a failure.
  def test_deaths_in_an_order
    serve_acme("a.test", client("sleep 100"))
    wait_until("the order") { calls.any? && program }
    before = @one.descendants
    Process.kill(:KILL, program)
    said("oribi-frontend --acme has ended early")
    wait_until("its client to end") { before.none? { |pid| File.read("/proc/#{pid}/cmdline").include?("sleep\0100") rescue nil } }
    assert_equal "failures 1", File.readlines("#{@acme}/a.test.state", chomp: true).first
    assert_equal 200, Net::HTTP.get_response(URI("http://127.0.0.1:#{@status}/ready")).code.to_i
  end

  def test_a_stop_ends_an_order
    serve_acme("a.test", client("trap '' TERM; while :; do sleep 1; done"))
    wait_until("the order") { calls.any? }
    @one.stop
    assert_equal "failures 0", File.readlines("#{@acme}/a.test.state", chomp: true).first, "the authority has not failed"
    wait_until("the client to end") { Dir["/proc/[0-9]*/cmdline"].none? { |file| File.read(file).include?("#{@dir}/client") rescue nil } }
  end

  def test_two_servers_in_one_folder
    go = "#{@dir}/go"
    serve_acme("a.test", client("while [ ! -e #{go} ]; do sleep 0.05; done; exit 2"))
    wait_until("the order") { calls.any? }
    @http, @status = E2E.free_port, E2E.free_port
    second = E2E::Server.new(argv: command(words("a.test", "#{@dir}/client", "https://localhost:1/dir"), "#{@dir}/control2"))
    @others << second.start
    said("another process asks for certificates in #{@acme}", second)
    FileUtils.touch(go)
    said("not issued")
    refute_match(/not issued/, second.stderr)
  end

  def test_a_folder_that_cannot_be_used
    File.write(@acme, "")
    serve_acme("a.test", client("exit 2"))
    said(/not issued: .*acme.*; /)
    assert_empty calls
    assert_equal "/CN=Oribi placeholder", issuer("a.test")
    assert_equal 1, @one.stderr.scan("not issued").size
  end

  # The key of another certificate in the file: a placeholder serves, and a new one is asked for.
  def test_a_file_that_was_swapped
    authority
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
    @one.stop
    text = File.read("#{@acme}/a.test.pem")
    key = OpenSSL::PKey::EC.generate("prime256v1").private_to_pem
    File.write("#{@acme}/a.test.pem", text.sub(/-----BEGIN PRIVATE KEY.*/m, key))
    serve_acme("a.test", @authority.client, @authority.directory)
    assert_match(/the key is not this certificate's; a placeholder serves until a new one has come/, @one.stderr)
    said("issued for a.test")
    wait_until("the certificate") { issuer("a.test").include?("Pebble") }
    File.write("#{@acme}/a.test.pem", text.sub(/-----BEGIN PRIVATE KEY.*/m, key))
    output, code = ctl("certificates")
    refute code.success?
    assert_match(/the current ones stay in use/, output)
    assert_includes issuer("a.test"), "Pebble"
  end

  # The files of another server, or of an operator, are found by ctl.
  def test_files_that_come_from_elsewhere
    authority
    serve_acme("a.test", @authority.client, @authority.directory)
    said("issued for a.test")
    file = File.read("#{@acme}/a.test.pem")
    @one.stop
    FileUtils.rm_rf(@acme)
    serve_acme("a.test", client("exit 2"))
    said("not issued")
    File.write("#{@acme}/a.test.pem", file, perm: 0o600)
    output, code = ctl("certificates")
    assert code.success?, output
    assert_match(/^a\.test +(good|failed) +20/, output)
    wait_until("the certificate") { issuer("a.test").include?("Pebble") }
  end

  def test_the_client_has_a_user_of_its_own
    skip "not root" unless Process.uid.zero?
    FileUtils.chmod(0o755, @dir)
    script = client("id -un >>#{@dir}/who; id -Gn >>#{@dir}/who; touch /proc/self/cwd 2>/dev/null; exit 2")
    FileUtils.touch(["#{@dir}/who", "#{@dir}/client.calls"])
    FileUtils.chmod(0o666, ["#{@dir}/who", "#{@dir}/client.calls"])
    @one = E2E::Server.new(argv: command(words("a.test", script, "https://localhost:1/dir", user: %w[--acme-user nobody]), "#{@dir}/control")).start
    said("not issued")
    assert_equal "nobody", File.readlines("#{@dir}/who", chomp: true).first
    refute_includes File.read("#{@dir}/who"), "root"
    assert_equal "nobody", Etc.getpwuid(File.stat("#{@acme}/account").uid).name
    assert_equal 0, File.stat("#{@acme}/a.test.state").uid
  end

  # As a gem in a home folder is.
  def test_a_hook_that_the_client_may_not_run
    skip "not root" unless Process.uid.zero?
    FileUtils.chmod(0o755, @dir)
    FileUtils.mkdir("#{@dir}/home", mode: 0o700)
    FileUtils.cp(File.join(E2E::ROOT, E2E::FRONTEND), "#{@dir}/home/oribi-frontend")
    argv = command(words("a.test", "true", "https://localhost:1/dir", user: %w[--acme-user nobody]), "#{@dir}/control")
    @one = E2E::Server.new(argv: argv, env: { "ORIBI_FRONTEND_PROGRAM" => "#{@dir}/home/oribi-frontend" }).start
    said(%r{not issued: the user of the client may not run #{@dir}/home/oribi-frontend: let that user enter its folders, or set acme_user})
  end

  # An order that cannot be installed costs the authority none.
  def test_a_folder_in_the_place_of_the_certificate
    FileUtils.mkdir_p("#{@acme}/a.test.pem")
    serve_acme("a.test", client("exit 2"))
    said(/not issued: .*a\.test\.pem: it is not a regular file; remove it/)
    assert_empty calls
  end

  def test_words_that_are_wrong
    base = ["--acme", "a.test", "--no-dev"]
    { base => /acme needs acme_terms on/, ["--acme", "*.a.test"] => /wildcard/, ["--acme", "127.0.0.1"] => /address/,
      [*base, "--acme-terms", "--acme-directory", "http://a"] => /acme_directory must be an https/,
      [*base, "--acme-terms", "--bind", "127.0.0.1:1"] => /acme needs an address that begins with tls/,
      ["--acme", "a.test?mail=x"] => /unknown setting "mail"/ }.each do |options, line|
      output, code = Open3.capture2e(E2E::Server.binary, *options, File.expand_path(E2E.differing(:app), E2E::ROOT))
      refute code.success?, output
      assert_match(line, output)
    end
  end
end

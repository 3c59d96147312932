# frozen_string_literal: true

require "openssl"
require "open3"

# Servers with tls:// addresses, their certificates and clients.
module FrontendServers
  NAMES = "DNS:localhost,DNS:*.example.test"

  # An address without TLS that a frontend serves.
  PLAIN_ADDRESS = "tcp://127.0.0.1:%{port}?frontend=on"

  # Programs that are not ours run without a sanitizer's run-time (script/sanitize), under which curl hangs.
  PLAIN = { "LD_PRELOAD" => nil }.freeze

  # Writes NAME.pem and NAME.key. names: nil for none. by: another authority, which has no file. password: of the key.
  def self.certificate(dir, name, names = NAMES, key: OpenSSL::PKey::EC.generate("prime256v1"), begins_s: 60, ends_s: 86_400, by: nil, password: nil)
    cert = OpenSSL::X509::Certificate.new.tap do |x|
      x.version = 2
      x.serial = rand(1 << 62)
      x.subject = OpenSSL::X509::Name.parse("/CN=#{name}")
      x.issuer = by ? OpenSSL::X509::Name.parse("/CN=#{by}") : x.subject
      x.public_key = key
      x.not_before = Time.now - begins_s
      x.not_after = Time.now + ends_s
      extensions = OpenSSL::X509::ExtensionFactory.new(x, x)
      x.add_extension(extensions.create_extension("subjectAltName", names)) if names
      x.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
      x.sign(by ? OpenSSL::PKey::EC.generate("prime256v1") : key, "SHA256")
    end
    File.write("#{dir}/#{name}.key", password ? key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), password) : key.to_pem, perm: 0o600)
    File.write("#{dir}/#{name}.pem", cert.to_pem)
    cert
  end

  # What a sanitizer keeps about memory is longer than any machine's.
  SHADOW_BYTES_MIN = 1 << 34

  # Is the text anywhere in the memory that the process writes? Not when it has ended meanwhile, as the process between
  # a mold and its worker does. For root.
  def self.memory_has?(pid, text)
    File.open("/proc/#{pid}/mem", "rb") do |memory|
      File.readlines("/proc/#{pid}/maps").grep(/\A\S+ rw/).any? do |line|
        from, to = line[/\A\S+/].split("-").map(&:hex)
        next if to - from >= SHADOW_BYTES_MIN

        memory.pread(to - from, from).include?(text)
      rescue Errno::EIO, Errno::EFAULT, EOFError
        false # what the kernel keeps for itself
      end
    end
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  def self.here? = @here ||= File.executable?(File.join(E2E::ROOT, E2E::RUBY ? "ruby/lib/oribi/oribi-frontend" : "perl/blib/arch/auto/Oribi/oribi-frontend"))

  def setup
    super
    skip "no oribi-frontend here: it needs libssl-dev, libnghttp2-dev and pkg-config" unless FrontendServers.here?
    @held = []
    @dir ||= Dir.mktmpdir("oribi-e2e")
    FrontendServers.certificate(@dir, "site")
  end

  def teardown
    @held&.each(&:close)
    @one&.cleanup
    FileUtils.remove_entry(@dir) if @dir
    @dir = nil
    super
  end

  # Seconds that curl is given, as text.
  def self.patience = (20 * E2E.patience).ceil.to_s

  # A client that is closed behind the test.
  def hold(client) = client.tap { @held << client }

  def bind = "tls://127.0.0.1:%{port}?certificate=#{@dir}/site.pem&key=#{@dir}/site.key"

  def serve(*options, address: bind, app: E2E.differing(:app), **more)
    argv = [E2E::Server.binary, "--bind", address, "--no-dev", "--control", "#{@dir}/control", *options, File.expand_path(app, E2E::ROOT)]
    @one = E2E::Server.new(argv: argv, **more).start
    wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
  end

  # The application of this name in e2e/apps, without TLS unless the address says so, with a status listener.
  def serve_plain(name, *options, address: PLAIN_ADDRESS, workers: 1, **more)
    serve("--workers", workers.to_s, "--status", "#{@dir}/status", *options, address: address, app: "e2e/apps/#{name}.#{E2E::RUBY ? "ru" : "psgi"}", **more)
    @tls = address.start_with?("tls")
  end

  def curl_status(target) = Open3.capture2(PLAIN, "curl", "-sS", "--unix-socket", "#{@dir}/status", "http://localhost#{target}").first
  def metric(name) = curl_status("/metrics")[/^#{Regexp.escape(name)} (\d+)$/, 1].to_i

  def curl(target, *words, name: "localhost", scheme: "https")
    out, error, status = Open3.capture3(PLAIN, "curl", "-sS", "--max-time", FrontendServers.patience, "--cacert", "#{@dir}/site.pem", "--resolve",
                                        "#{name}:#{@one.port}:127.0.0.1", *words, "#{scheme}://#{name}:#{@one.port}#{target}")
    assert status.success?, "curl #{words.join(" ")} #{target}: #{error}#{@one.stderr}"
    out
  end

  # Serves what a configuration file says; %{port} in it is a free port.
  def serve_file(text, *options)
    port = E2E.free_port
    config = File.join(@dir, E2E::RUBY ? "oribi.rb" : "oribi.pl")
    File.write(config, text.gsub("%{port}", port.to_s))
    argv = [E2E::Server.binary, "-C", config, "--no-dev", "--control", "#{@dir}/control", *options, File.expand_path(E2E.differing(:app), E2E::ROOT)]
    @one = E2E::Server.new(argv: argv)
    @one.instance_variable_set(:@address, ["127.0.0.1", port])
    @one.start
    wait_until("the server to be up: #{@one.stderr}") { @one.stderr.include?("listening on") }
  end

  # The certificate that a client gets who asks for the name.
  def peer_certificate(name)
    tcp = TCPSocket.new("127.0.0.1", @one.port)
    tls = OpenSSL::SSL::SSLSocket.new(tcp, OpenSSL::SSL::SSLContext.new)
    tls.hostname = name
    tls.connect
    tls.peer_cert
  ensure
    tls&.close
    tcp&.close
  end

  def ctl(*words) = Open3.capture2e(E2E::Server.binary, "ctl", "--control", "#{@dir}/control", *words)

  def frontend = FrontendServers.frontend_of(@one)
  def frontend_pids = @one.descendants.select { |pid| FrontendServers.frontend?(pid) }
  def worker_pids = ctl("status").first.scan(/^ +\d+ +(\d+) +\d+  \S+ /).flatten.map(&:to_i).select(&:positive?)

  # A process that may have ended meanwhile, or be nil: there is none.
  def kill(signal, pid)
    Process.kill(signal, pid) if pid
  rescue Errno::ESRCH
    nil
  end

  def self.frontend_of(server) = server.descendants.find { |pid| frontend?(pid) }

  def self.frontend?(pid)
    File.read("/proc/#{pid}/comm").strip == "oribi-frontend"
  rescue Errno::ENOENT, Errno::ESRCH
    false # it has ended meanwhile
  end

  # Runs h2load until the block is through, which is given whether h2load runs still; gives its counts.
  def under_load(*words)
    out = File.join(@dir, "h2load")
    load = Process.detach(Process.spawn(PLAIN, "h2load", *words, "https://127.0.0.1:#{@one.port}/pid", out: out, err: %i[child out]))
    yield -> { load.alive? }
    Process.kill(:INT, load.pid) if words.include?("--duration")
    E2E.wait_until("h2load to end", seconds: 60) { !load.alive? }
    File.read(out)[/^requests: .*/].scan(/(\d+) (\w+)/).to_h { |count, word| [word.to_sym, count.to_i] }
  end
end

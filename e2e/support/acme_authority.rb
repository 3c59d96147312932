# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"

# A real authority for ACME on loopback, Debian's pebble, with a DNS server of its own in which every name leads to
# 127.0.0.1. It has a certificate that only clients of #client know.
class AcmeAuthority
  PROGRAMS = %w[pebble pebble-challtestsrv uacme unshare].freeze

  # Why there is none here; nil when there is one.
  def self.refused
    missing = PROGRAMS.reject { |name| ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, name)) } }
    return "no #{missing.join(", ")} here" if missing.any?

    "no mount namespaces for this user" unless system(*unshare, "true", out: File::NULL, err: File::NULL)
  end

  def self.unshare = Process.uid.zero? ? %w[unshare -m] : %w[unshare -Urm]

  attr_reader :pid

  # http_port, tls_port: where it asks for challenges. life_s: of a certificate. blocked: names for which it issues
  # none. nonce_reject: so many percent of nonces are refused. slow: it waits some seconds before it validates.
  def initialize(dir, http_port:, tls_port: E2E.free_port, life_s: 7_776_000, blocked: [], nonce_reject: 0, slow: false)
    @dir = dir
    @http_port = http_port
    @tls_port = tls_port
    @life_s = life_s
    @blocked = blocked
    @env = { "PEBBLE_WFE_NONCEREJECT" => nonce_reject.to_s, "LD_PRELOAD" => nil, "PEBBLE_VA_NOSLEEP" => slow ? "0" : "1" }
    @port, @admin, @dns, @dns_admin = Array.new(4) { E2E.free_port }
  end

  def directory = "https://localhost:#{@port}/dir"

  def start
    write_certificates
    File.write("#{@dir}/pebble.json", JSON.dump(pebble: configuration))
    @dns_pid = spawn_quietly("dns", "pebble-challtestsrv", "-defaultIPv6", "", "-dns01", "127.0.0.1:#{@dns}", "-http01", "", "-https01", "",
                             "-tlsalpn01", "", "-management", "127.0.0.1:#{@dns_admin}")
    start_pebble
    self
  end

  def start_pebble
    @pid = spawn_quietly("pebble", "pebble", "-config", "#{@dir}/pebble.json", "-dnsserver", "127.0.0.1:#{@dns}", "-strict=false")
    [@port, @admin, @dns_admin].each { |port| E2E.wait_until("the authority at #{port}: #{File.read("#{@dir}/pebble.log")}") { listens?(port) } }
  end

  def stop_pebble
    end_of(@pid)
    @pid = nil
  end

  def stop = [@pid, @dns_pid].compact.each { |pid| end_of(pid) }

  # The certificate at the root of those that it issues.
  def root
    Net::HTTP.start("127.0.0.1", @admin, use_ssl: true, verify_mode: OpenSSL::SSL::VERIFY_NONE) { |http| http.get("/roots/0").body }
  end

  # The name leads nowhere from now on.
  def hide(name) = manage("add-a", host: "#{name}.", addresses: ["127.0.0.2"])
  def show(name) = manage("clear-a", host: "#{name}.")

  # A client that knows the authority's certificate: uacme in a mount namespace in which that stands for all others, as
  # it can be told of none.
  def client
    path = "#{@dir}/uacme"
    File.write(path, <<~SH, perm: 0o755)
      #!/bin/sh
      echo "$*" >> #{@dir}/client.calls
      exec #{AcmeAuthority.unshare.join(" ")} sh -c 'mount --bind #{@dir}/authority.pem /etc/ssl/certs/ca-certificates.crt && exec uacme "$@"' uacme "$@"
    SH
    path
  end

  # How often a certificate was asked for.
  def orders = File.exist?("#{@dir}/client.calls") ? File.readlines("#{@dir}/client.calls").grep(/ issue /).size : 0

  def log = File.read("#{@dir}/pebble.log")

  private

  def configuration
    { listenAddress: "127.0.0.1:#{@port}", managementListenAddress: "127.0.0.1:#{@admin}", certificate: "#{@dir}/localhost.pem",
      privateKey: "#{@dir}/localhost.key", httpPort: @http_port, tlsPort: @tls_port, certificateValidityPeriod: @life_s, domainBlocklist: @blocked }
  end

  def write_certificates
    root = OpenSSL::PKey::EC.generate("prime256v1")
    key = OpenSSL::PKey::EC.generate("prime256v1")
    issuer = made("authority", root, root, "CA:TRUE")
    File.write("#{@dir}/authority.pem", issuer.to_pem)
    File.write("#{@dir}/localhost.pem", made("localhost", key, root, "CA:FALSE", issuer).to_pem)
    File.write("#{@dir}/localhost.key", key.to_pem, perm: 0o600)
  end

  def made(name, key, signer, constraints, issuer = nil)
    OpenSSL::X509::Certificate.new.tap do |x|
      x.version = 2
      x.serial = rand(1 << 62)
      x.subject = OpenSSL::X509::Name.parse("/CN=#{name}")
      x.issuer = issuer ? issuer.subject : x.subject
      x.public_key = key
      x.not_before = Time.now - 60
      x.not_after = Time.now + 86_400
      extensions = OpenSSL::X509::ExtensionFactory.new(issuer || x, x)
      x.add_extension(extensions.create_extension("basicConstraints", constraints, true))
      x.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1")) if issuer
      x.sign(signer, "SHA256")
    end
  end

  def spawn_quietly(name, *words) = Process.spawn(@env, *words, out: "#{@dir}/#{name}.log", err: %i[child out])

  def listens?(port)
    TCPSocket.new("127.0.0.1", port).close || true
  rescue Errno::ECONNREFUSED
    false
  end

  def end_of(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil # it has ended
  end

  def manage(what, **body)
    Net::HTTP.post(URI("http://127.0.0.1:#{@dns_admin}/#{what}"), JSON.dump(body)).value
  end
end

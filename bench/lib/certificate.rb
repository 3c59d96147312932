# frozen_string_literal: true

require "fileutils"
require "openssl"
require "socket"
require_relative "peer"

module Bench
  # The certificate that all servers show over TLS, its key on the curve P-256, and a client that looks whether what it
  # gets is that kind of key and the one cipher that all are measured with.
  module Certificate
    FOLDER = File.join(ROOT, "build/bench/tls")
    PEM, KEY = %w[site.pem site.key].map { |name| File.join(FOLDER, name) }
    DAYS = 30
    CIPHER = "TLS_AES_256_GCM_SHA384"
    CURVE = "prime256v1"
    Unequal = Class.new(StandardError)

    module_function

    # Makes both files where there are none, or old ones.
    def ready
      return if [PEM, KEY].all? { |path| File.exist?(path) && Time.now - File.mtime(path) < DAYS * 86_400 / 2 }

      FileUtils.mkdir_p(FOLDER)
      key = OpenSSL::PKey::EC.generate(CURVE)
      File.write(KEY, key.to_pem, perm: 0o600)
      File.write(PEM, certificate(key).to_pem)
    end

    def certificate(key)
      name = OpenSSL::X509::Name.parse("/CN=localhost")
      made = OpenSSL::X509::Certificate.new
      made.version = 2
      made.serial = 1
      made.subject = made.issuer = name
      made.public_key = key
      made.not_before = Time.now - 3600
      made.not_after = Time.now + DAYS * 86_400
      made.add_extension(OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
      made.sign(key, OpenSSL::Digest.new("SHA256"))
    end

    # A connected client over TLS. Unequal: the server would be measured with something else than the others.
    def connect(socket, protocols: nil)
      context = OpenSSL::SSL::SSLContext.new
      context.verify_mode = OpenSSL::SSL::VERIFY_NONE
      context.min_version = OpenSSL::SSL::TLS1_3_VERSION
      context.alpn_protocols = protocols if protocols
      client = OpenSSL::SSL::SSLSocket.new(socket, context)
      client.sync_close = true
      client.connect
      kind = client.peer_cert.public_key
      cipher, curve = client.cipher.first, kind.is_a?(OpenSSL::PKey::EC) ? kind.group.curve_name : kind.class.name
      return client if cipher == CIPHER && curve == CURVE

      client.close
      raise Unequal, "speaks #{cipher} with a key of #{curve}"
    end
  end
end

# frozen_string_literal: true

require "openssl"
require "socket"

module E2E
  # Clients that shake hands with a TLS server of this machine until they are told to stop: of TLS 1.2 and 1.3, whole
  # handshakes and resumed ones in turn. Behind a whole one each asks for a page.
  class Handshakes
    # Between two handshakes of a client, which would take a processor otherwise: they last as long as the certificates.
    PAUSE_S = MORE_ROUNDS ? 0 : 0.05
    VERSIONS = [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].freeze

    # name: asked for (SNI). each: clients of a version.
    def initialize(port, name, each: 2)
      @port = port
      @name = name
      @stop = false
      @lock = Mutex.new
      @counts = Hash.new(0)
      @serials = []
      @failed = []
      @threads = (VERSIONS * each).map { |version| Thread.new { shake(version) } }
    end

    # All that were good.
    def total = @lock.synchronize { @counts.values.sum }

    # "TLSv1.3 resumed" => how many.
    def counts = @lock.synchronize { @counts.dup }

    # Of the certificates that whole handshakes have shown.
    def serials = @lock.synchronize { @serials.dup }

    # @return [Array<String>] why handshakes, or requests behind them, failed
    def stop
      @stop = true
      @threads.each(&:join)
      @failed
    end

    private

    def shake(version)
      session = nil
      until @stop
        session = once(version, session)
        sleep(PAUSE_S)
      end
    end

    # Gives the session for the next one, nil after a resumed handshake.
    def once(version, session)
      found = nil
      context = OpenSSL::SSL::SSLContext.new.tap do |one|
        one.min_version = one.max_version = version
        one.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT
        one.session_new_cb = ->((_, fresh)) { found = fresh } # of TLS 1.3 it comes behind the handshake
      end
      tcp = TCPSocket.new("127.0.0.1", @port)
      tls = OpenSSL::SSL::SSLSocket.new(tcp, context)
      tls.hostname = @name
      tls.session = session if session
      tls.connect
      reused = tls.session_reused?
      ask(tls) unless reused
      note("#{tls.ssl_version} #{reused ? "resumed" : "whole"}", reused ? nil : tls.peer_cert.serial)
      reused ? nil : found
    rescue StandardError => e
      @lock.synchronize { @failed << "#{e.class}: #{e.message}" }
      nil
    ensure
      tls&.close
      tcp&.close
    end

    def ask(tls)
      tls.write("GET /pid HTTP/1.1\r\nHost: #{@name}\r\nConnection: close\r\n\r\n")
      answer = tls.read
      raise "answered #{answer.inspect}" unless answer.start_with?("HTTP/1.1 200")
    end

    def note(kind, serial)
      @lock.synchronize do
        @counts[kind] += 1
        @serials |= [serial] if serial
      end
    end
  end
end

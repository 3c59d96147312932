# frozen_string_literal: true

require_relative "oribi_redis"

module Oribi
  class Redis
    # Where a Redis is, and who asks there.
    class Place
      PARTS = %i[host port path db user password].freeze

      attr_reader :host, :port, :path, :user, :password, :db

      # url: nil is REDIS_URL, where neither host, path nor Sentinels are given.
      def initialize(url, parts)
        url ||= ENV["REDIS_URL"] unless parts[:host] || parts[:path] || parts[:sentinels]
        @tls, @host, @port, @path, @user, @password, @db = Link.parse_url(url || "redis://127.0.0.1:6379")
        @host, @path = parts[:host], parts[:path] if parts[:host] || parts[:path]
        @port = parts[:port] || @port
        @user = parts[:user] || @user
        @password = parts[:password] || @password
        @db = parts[:db] || @db
        raise UsageError, "path and host exclude each other" if @host && @path
        raise UsageError, "port is a number from 1 to 65535" unless @port.is_a?(Integer) && @port.between?(1, 65_535)
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      def tls? = @tls
      def to_s = @path || "#{@host}:#{@port}"
    end

    # A connection: Link's operations with this client's errors.
    class Connection < Link
      KINDS = { connection: ConnectionError, read_timeout: TimeoutError, write_timeout: TimeoutError, protocol: ProtocolError }.freeze
      RESEND = %i[never safe always].freeze # as Link counts them

      # name => command that each new connection repeats, in the order in which they were first sent.
      attr_reader :kept

      def initialize(place, options, sentinel)
        super(CommandError)
        @place = place
        @options = options
        @sentinel = sentinel
        @kept = {}
        self.read_ms = options[:read_timeout_ms]
        self.write_ms = options[:write_timeout_ms]
        self.follows = !sentinel.nil?
        set_tries(options[:reconnect_attempts], options[:reconnect_delay_ms], options[:reconnect_delay_max_ms], RESEND.index(options[:resend]))
      end

      # Connects and greets: TLS, HELLO or AUTH, SELECT, the client's name.
      def open
        ready = false
        self.opening = true
        @host, port = @sentinel ? master : [@place.host, @place.port]
        connect(@sentinel ? nil : @place.path, @host, port, @options[:connect_timeout_ms])
        start_tls if @place.tls? || @options[:tls]
        greet
        check_role if @sentinel
        ready = true
      ensure # also when a thread is raised out of it: a connection without its greeting is in another database
        self.opening = false
        close unless ready
      end

      # Called by Link: raises.
      def failed(kind, text)
        raise KINDS.fetch(kind), text
      end

      private

      # Asked over this connection.
      def master
        usual = read_ms
        self.read_ms = @options[:read_timeout_ms]
        find_master(@sentinel, @options[:connect_timeout_ms])
      ensure
        self.read_ms = usual
      end

      def greetings
        auth = @place.password && [@place.user || "default", @place.password]
        hello = if @options[:protocol] == 3
                  ["HELLO", 3, *(["AUTH", *auth] if auth), *(["SETNAME", @options[:client_name]] if @options[:client_name])]
                end
        plain = [auth && ["AUTH", *(@place.user ? auth : auth.drop(1))], @options[:client_name] && ["CLIENT", "SETNAME", @options[:client_name]]]
        [*(hello ? [hello] : plain.compact), *([["SELECT", @place.db]] unless @place.db.zero?), *@kept.values]
      end

      def greet
        commands = greetings
        return if commands.empty?

        call_all(commands, commands.map { @options[:connect_timeout_ms] }).each_with_index do |reply, index|
          next unless reply.is_a?(CommandError)

          hint = "; servers before Redis 6 want protocol: 2" if commands[index].first == "HELLO" && reply.message.match?(/unknown command|NOPROTO/i)
          raise ConnectionError, "the server refuses the connection: #{reply.message.strip}#{hint}"
        end
      end

      # A master that was replaced may not know it yet.
      def check_role
        role, = call(["ROLE"])
        failed(:connection, "the server that the Sentinel named is no master: #{role}") unless role == "master"
      end

      def start_tls
        require_relative "tls"
        limit_ms = @options[:connect_timeout_ms]
        socket = TLS.start(fileno, @host, TLS.context(@options[:tls]), limit_ms)
        attach(socket || raise(TimeoutError, "no TLS handshake within #{limit_ms} ms"))
      rescue OpenSSL::SSL::SSLError, SystemCallError => e
        failed(:connection, "TLS: #{e.message}")
      end
    end
  end
end

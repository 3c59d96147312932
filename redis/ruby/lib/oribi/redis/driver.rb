# frozen_string_literal: true

require "redis_client"
require "redis_client/connection_mixin"
require_relative "errors"
require_relative "oribi_redis"
require_relative "tls"

module Oribi
  class Redis
    # A driver for redis-client, and so for all that is built on it (redis, Sidekiq, Rails' cache):
    #
    #     require "oribi/redis/driver"
    #     RedisClient.config(driver: :oribi)
    #
    # Pushes of RESP3 (invalidations of client-side caching, for instance) stay out of the replies of pipelines.
    class Driver
      include RedisClient::ConnectionMixin

      # A Link whose failures are redis-client's exceptions.
      class DriverLink < Link
        KINDS = { connection: RedisClient::ConnectionError, read_timeout: RedisClient::ReadTimeoutError,
                  write_timeout: RedisClient::WriteTimeoutError, protocol: RedisClient::ProtocolError }.freeze

        attr_writer :driver

        def failed(kind, text) = @driver.failed(KINDS.fetch(kind), text)
      end

      class << self
        def ssl_context(ssl_params)
          params = ssl_params.dup
          params[:cert] = OpenSSL::X509::Certificate.new(content_of(params[:cert])) if params[:cert].is_a?(String)
          params[:key] = OpenSSL::PKey.read(content_of(params[:key])) if params[:key].is_a?(String)
          TLS.context(params)
        end

        private

        def content_of(text) = File.exist?(text) ? File.read(text) : text
      end

      def initialize(config, connect_timeout:, read_timeout:, write_timeout:)
        super(config)
        @link = DriverLink.new(RedisClient::CommandError)
        @link.driver = self
        @connect_ms = milliseconds(connect_timeout)
        self.read_timeout = read_timeout
        self.write_timeout = write_timeout
        connect
      end

      def read_timeout=(timeout)
        @link.read_ms = @read_ms = milliseconds(timeout)
      end

      def write_timeout=(timeout)
        @link.write_ms = milliseconds(timeout)
      end

      def connected? = @link.open?

      def close
        @link.close
        super
      end

      # False: it was left in the middle of something, or leads elsewhere by now.
      def revalidate
        return connected? if !@link.busy? && @server_key == @config.server_key

        close
        false
      end

      def call(command, timeout)
        result = with_limit(connection_timeout(timeout)) { @link.call(command) }
        raise about(result, command) if result.is_a?(RedisClient::Error)

        result
      end

      def call_pipelined(commands, timeouts, exception: true)
        limits = timeouts&.map { |timeout| timeout.nil? ? nil : milliseconds(connection_timeout(timeout)) }
        results = @link.call_all(commands, limits)
        return results unless results.any?(RedisClient::Error) || results.any?(Array)

        errors = results.each_with_index.filter_map do |result, index|
          next about(result, commands[index]) if result.is_a?(RedisClient::Error)

          result.each { |one| one._set_config(config) if one.is_a?(RedisClient::Error) } if result.is_a?(Array)
          nil
        end
        errors.each_cons(2) { |one, after| one._set_next_error(after) }
        raise errors.first if exception && errors.any?

        results
      end

      # For subscriptions: commands whose answers are pushes.
      def write(command)
        @link.listen(command)
      end

      def write_multi(commands)
        commands.each { |command| @link.listen(command) }
      end

      # The next push. Raises ReadTimeoutError when none comes in time; the connection goes on then.
      def read(timeout = nil)
        limit_ms = timeout.nil? ? @read_ms : milliseconds(timeout)
        deadline = RedisClient.now_ms + limit_ms
        until @link.push?
          left = limit_ms.zero? ? nil : deadline - RedisClient.now_ms
          failed(RedisClient::ReadTimeoutError, "no message within #{limit_ms} ms") if left && left <= 0
          IO.for_fd(@link.fileno, autoclose: false).wait_readable(left && left / 1000.0)
        end
        @link.next_push
      end

      def measure_round_trip_delay
        start = RedisClient.now_ms
        call(["PING"], nil)
        RedisClient.now_ms - start
      end

      def failed(error, text)
        raise error.with_config(text, config).tap { |one| one._set_retry_attempt(@retry_attempt) }
      end

      private

      # false, nil and 0 are no limit.
      def milliseconds(timeout) = timeout ? (timeout * 1000).ceil : 0

      def with_limit(timeout)
        return yield if timeout.nil?

        @link.read_ms = milliseconds(timeout)
        begin
          yield
        ensure
          @link.read_ms = @read_ms
        end
      end

      def about(error, command)
        error._set_command(command)
        error._set_config(config)
        error._set_retry_attempt(@retry_attempt)
        error
      end

      def connect
        @server_key = @config.server_key
        @link.connect(@config.path, @config.host, @config.port, @connect_ms)
        start_tls if @config.ssl
      rescue RedisClient::ConnectionError => e
        raise RedisClient::CannotConnectError.with_config(e.message, config)
      end

      def start_tls
        socket = TLS.start(@link.fileno, @config.host, @config.ssl_context, @connect_ms)
        @link.attach(socket || failed(RedisClient::CannotConnectError, "no TLS handshake within #{@connect_ms} ms"))
      rescue OpenSSL::SSL::SSLError, SystemCallError => e
        @link.close
        raise RedisClient::CannotConnectError.with_config("TLS: #{e.message}", config)
      end
    end
  end
end

RedisClient.register_driver(:oribi) { Oribi::Redis::Driver }

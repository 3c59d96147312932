# frozen_string_literal: true

require_relative "redis/version"
require_relative "redis/errors"
require_relative "redis/connection"
require_relative "redis/commands"
require_relative "redis/session"
require_relative "redis/scan"
require_relative "redis/script"
require_relative "redis/subscription"

module Oribi
  # A client of Redis that never gives a wrong answer.
  #
  #     redis = Oribi::Redis.new                                    # REDIS_URL, or 127.0.0.1:6379
  #     redis = Oribi::Redis.new("rediss://:secret@redis.example:6380/2")
  #     redis = Oribi::Redis.new(path: "/run/redis/redis.sock", read_timeout_ms: 200)
  #
  #     redis.command("SET", "key", "value")                        # "OK"
  #     redis.command("GET", "key")                                 # "value"; nil when there is none
  #     n, list = redis.pipeline(["INCR", "n"], ["LRANGE", "list", 0, -1])
  #     redis.noreply(["INCR", "hits"], ["EXPIRE", "hits", 60])     # replies are read and counted later
  #     count, *errors = redis.settle
  #
  # The contract:
  #
  # * A reply is the reply to its command. A connection that saw a time limit, an exception in the middle of a command
  #   (Timeout.timeout, Thread#raise, a signal handler that raises), a fork, or bytes that are no reply is closed and
  #   never used again. So is one on which a reply has come that nobody asked for: behind another reply, or before a
  #   command that is sent 2 ms after the last one or later. What a broken server sends in between cannot be told from
  #   an answer.
  # * A command that may have been carried out is not sent again, unless a second time changes nothing (commands that
  #   only read, SET without options) or `resend: :always` says so. What has certainly not been sent is tried again,
  #   `reconnect_attempts` times, after a growing and partly random time. After a time limit nothing is sent again.
  # * Every wait has a limit in milliseconds. Looking a name up (getaddrinfo(3)) has none.
  # * Threads and fibers may share a client: each call takes a connection that nobody uses, or opens one, up to
  #   `connections_max`; beyond that it waits, at most `connect_timeout_ms`. A child of a fork opens its own; the end of
  #   a process changes nothing for another, for no QUIT is sent.
  # * A failure is an exception with a class (Oribi::Redis::Error and below); an error of the server within a pipeline
  #   or an array is an object in its place.
  # * Everything has a maximum: 1,048,576 words of a command, 512 MiB of a string, 128 arrays within arrays, 64 KiB of a
  #   line, 10,000 replies of noreply that are not read yet.
  class Redis
    include Commands

    DEFAULTS = { db: nil, user: nil, password: nil, client_name: nil, protocol: 3, tls: nil, connect_timeout_ms: 1000, read_timeout_ms: 1000,
                 write_timeout_ms: 1000, reconnect_attempts: 3, reconnect_delay_ms: 50, reconnect_delay_max_ms: 1000, resend: :safe,
                 connections_max: 64, sentinels: nil, service: nil, sentinel_user: nil, sentinel_password: nil }.freeze

    # Does not connect: the first command does. Raises UsageError for what cannot be.
    #
    # url: as REDIS_URL has it; the other options take the place of its parts. tls: true, or a Hash of
    # OpenSSL::SSL::SSLContext#set_params. sentinels: addresses of Sentinels ("host:port"), which are asked for the
    # master of `service` before each connection; a server that says it is none is not taken.
    def initialize(url = nil, **options)
      @place = Place.new(url, options)
      unknown = options.keys - DEFAULTS.keys - Place::PARTS
      raise UsageError, "Oribi::Redis has no option #{unknown.first}" if unknown.any?

      @options = DEFAULTS.merge(options)
      raise UsageError, "resend is one of #{Connection::RESEND.join(", ")}" unless Connection::RESEND.include?(@options[:resend])

      @sentinel = Sentinel.new(*@options.values_at(:sentinels, :service, :sentinel_user, :sentinel_password)) if @options[:sentinels]
      @idle = []
      @made = 0
      @pid = Process.pid
      @age = 0
      @lock = Mutex.new
      @given_back = ConditionVariable.new
    rescue ArgumentError => e
      raise UsageError, e.message
    end

    # Sends one command, gives its reply: String (UTF-8, or binary where it is none), Integer, Float, true, false, nil,
    # Array (sets too), Hash. An error of the server is raised.
    def command(*words)
      session = @idle.pop || take
      session.command(*words)
    ensure
      give_back(session) if session
    end

    # The same with a time limit of its own, in milliseconds, for BLPOP and its like; 0: none.
    def blocking(limit_ms, *words) = with { |session| session.blocking(limit_ms, *words) }

    # Sends all commands at once and gives their replies, with errors of the server in their places.
    def pipeline(*commands) = with { |session| session.pipeline(*commands) }

    # Sends one command, or several, and does not wait: their replies are read before those of later commands, and
    # counted. Gives the number of commands sent.
    def noreply(*commands) = with { |session| session.noreply(*commands) }

    # Waits for the replies to noreply: [how many have come since the last time, error, ...].
    def settle
      idle = @lock.synchronize { @idle.dup }
      found = idle.map { |session| session.settle }
      [found.sum(&:first), *found.flat_map { |one| one.drop(1) }]
    end

    # A transaction: what the block says to `queue` is sent at once, between MULTI and EXEC. Gives the replies, or nil
    # when a watched key has changed. With watch the block may ask `session` first.
    #
    #     redis.multi(watch: ["stock"]) do |queue, session|
    #       left = session.command("GET", "stock").to_i
    #       queue.command("SET", "stock", left - 1) if left.positive?
    #     end
    def multi(watch: [], &block) = with { |session| session.multi(watch: watch, &block) }

    # Gives the block a connection of its own for as long as it lasts: for WATCH, MULTI and what else a connection
    # remembers. A Session has command, blocking, pipeline, noreply, settle, multi, hello. SELECT, AUTH and HELLO that
    # it was given are repeated on its new connections, and do not reach the next user's.
    def with
      session = @idle.pop || take
      yield session
    ensure
      give_back(session) if session
    end

    # A subscription on a connection of its own; see Subscription.
    def subscribe(*channels) = Subscription.new(new_session, "SUBSCRIBE", channels)
    def psubscribe(*patterns) = Subscription.new(new_session, "PSUBSCRIBE", patterns)
    def ssubscribe(*channels) = Subscription.new(new_session, "SSUBSCRIBE", channels)

    # A script, called by its digest, and sent whole where the server does not know it.
    def script(source) = Script.new(self, source)

    def hello(protocol = nil) = command("HELLO", *protocol)

    # No connection any more, until the next command; those in use end when they are given back.
    def close
      @lock.synchronize do
        @idle.each(&:close)
        @idle.clear
        @made = 0
        @pid = Process.pid
        @age += 1
      end
      nil
    end

    def inspect = "#<Oribi::Redis #{@place}>"

    private

    def new_session = Session.new(@place, @options, @sentinel)

    def take
      after_fork if @pid != Process.pid
      deadline = nil
      @lock.synchronize do
        loop do
          session = @idle.pop and return session
          break if @made < @options[:connections_max]

          deadline ||= now_ms + @options[:connect_timeout_ms]
          left = @options[:connect_timeout_ms].zero? ? nil : deadline - now_ms
          raise TimeoutError, "all #{@made} connections are in use" if left && left <= 0

          @given_back.wait(@lock, left && left / 1000.0)
        end
        @made += 1
      end
      new_session.tap { |one| one.age = @age }
    end

    def give_back(session)
      session.reset
      if session.age == @age
        @idle.push(session)
        @given_back.signal if @made >= @options[:connections_max]
      else
        session.close
      end
    end

    # What was open is the parent's: closed here, without a byte to the server.
    def after_fork
      @lock = Mutex.new
      @given_back = ConditionVariable.new
      @idle.each(&:close)
      @idle = []
      @made = 0
      @pid = Process.pid
    end

    def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
  end
end

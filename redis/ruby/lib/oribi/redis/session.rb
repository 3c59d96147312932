# frozen_string_literal: true

module Oribi
  class Redis
    # One connection for as long as its user has it, and the rules of what is sent again. Oribi::Redis#with gives one.
    class Session
      include Commands

      REFUSED = %w[SUBSCRIBE PSUBSCRIBE SSUBSCRIBE UNSUBSCRIBE PUNSUBSCRIBE SUNSUBSCRIBE MONITOR RESET QUIT SYNC PSYNC].freeze
      # Between these and the end of the transaction a lost connection cannot be replaced.
      PINS = %w[WATCH MULTI].freeze
      UNPINS = %w[EXEC DISCARD UNWATCH].freeze

      # Of a connection, behind which an operation may be made again.
      FAILURES = [ConnectionError, TimeoutError, ProtocolError].freeze

      # Sent again on each new connection of the same user; the next user gets one without them.
      KEPT = %w[HELLO AUTH SELECT].freeze
      SPECIAL = [*REFUSED, *PINS, *UNPINS, *KEPT].map(&:freeze).freeze

      attr_accessor :age

      def initialize(place, options, sentinel = nil)
        @options = options
        @link = Connection.new(place, options, sentinel)
        @quiet = 0 # commands of noreply that settle has not told
        @owed = 0  # … whose replies were not read, after the last operation that went well
        @lost = 0  # … whose replies went with their connection
        @pinned = false
      end

      def command(*words) = result(perform(words))

      def blocking(limit_ms, *words)
        usual = @link.read_ms
        @link.read_ms = limit_ms
        result(perform(words))
      ensure
        @link.read_ms = usual if usual
      end

      def pipeline(*commands)
        commands = commands.map { |one| Array(one) } unless commands.all?(Array)
        perform_all(commands) { @link.call_all(commands, nil) }
      end

      def noreply(*commands)
        commands = commands.first.is_a?(Array) ? commands : [commands]
        perform_all(commands) { @link.send_quietly(commands) }
        @quiet += commands.size
        @owed = @link.quiet
        commands.size
      end

      def settle
        failure = read_quiet
        count, texts = @link.quiet_errors
        errors = texts.map { |text| CommandError.new(text) }
        errors << CommandError.new("#{count - texts.size} more errors") if count > texts.size
        errors << ConnectionError.new("#{@lost} replies were lost: #{failure || "the connection has ended"}") if @lost.positive?
        told = @quiet
        @quiet = @lost = 0
        [told, *errors]
      end

      # What the block says to the queue, as a transaction; see Oribi::Redis#multi.
      def multi(watch: [])
        queue = Queue.new
        command("WATCH", *watch) if watch.any?
        begin
          yield queue, self
        rescue Exception
          command("UNWATCH") if watch.any? && @link.open? && !@link.busy?
          raise
        end
        return unwatched(watch) if queue.commands.empty?

        *queued, results = pipeline(["MULTI"], *queue.commands, ["EXEC"])
        raise queued.grep(CommandError).first || results if results.is_a?(CommandError)

        results
      end

      def hello(protocol = nil) = command("HELLO", *protocol)

      def close
        @pinned = false
        lose
        @link.close
      end

      # What is left in the middle of something is not given to the next user.
      def reset
        return close_kept if @link.kept.any?

        close if @pinned || @link.busy?
      end

      attr_reader :link

      # Connects unless it is, for a subscription.
      def ready
        @link.open
        @link
      rescue *FAILURES => e
        again(e, []) { @link }
      end

      # The commands of a transaction.
      class Queue
        attr_reader :commands

        def initialize = @commands = []

        def command(*words)
          @commands << words
          self
        end
      end

      private

      # Replies that were not waited for are read first: a close before them may take their commands along.
      def close_kept
        read_quiet unless @link.busy?
      ensure
        @link.kept.clear
        close
      end

      # What has failed, or nil.
      def read_quiet
        @link.settle if @link.open? && @link.quiet.positive?
        @owed = 0
        nil
      rescue *FAILURES => e
        lose
        e
      end

      def lose
        @lost += @owed
        @owed = 0
      end

      def unwatched(watch)
        command("UNWATCH") if watch.any?
        []
      end

      def result(reply) = reply.is_a?(CommandError) ? raise(reply) : reply
      def name_of(words) = words.first.to_s.upcase

      # No name of the lists above is shorter.
      ORDINARY_SIZE_MAX = 3

      def perform(words)
        name = words.first
        special = name.nil? || name.size > ORDINARY_SIZE_MAX && Link.any_named?([words], SPECIAL)
        refuse(words) if special && (name.nil? || REFUSED.include?(name_of(words)))
        reply = begin
          @link.call(words)
        rescue *FAILURES => e
          again(e, [words]) { @link.call(words) }
        end
        @owed = @link.quiet if @quiet.positive?
        note(words, reply) if special
        reply
      rescue TypeError, ArgumentError => e
        raise UsageError, e.message
      end

      def perform_all(commands)
        special = Link.any_named?(commands, SPECIAL)
        commands.each { |words| refuse(words) if words.empty? || REFUSED.include?(name_of(words)) } if special
        replies = begin
          yield
        rescue *FAILURES => e
          again(e, commands) { yield }
        end
        @owed = @link.quiet if @quiet.positive?
        commands.each_with_index { |words, index| note(words, replies&.at(index)) } if special
        replies
      rescue TypeError, ArgumentError => e
        raise UsageError, e.message
      end

      def refuse(words)
        raise UsageError, "a command has at least one word" if words.empty? || words.first.nil?

        raise UsageError, "#{words.first} is no command with one reply; see subscribe and close"
      end

      # What a command that was carried out means for those behind it.
      def note(words, reply)
        name = name_of(words)
        @link.kept[name] = words if KEPT.include?(name) && words.size > 1 && !reply.is_a?(CommandError)
        @pinned = true if PINS.include?(name)
        @pinned = false if UNPINS.include?(name)
      end

      # After a failure: what the block gives, on a new connection, where and when it is right to make the operation of
      # these commands again. What is right is said in C (retry.h).
      def again(failure, commands)
        @link.forget_tries
        loop do
          wait_or_raise(failure, commands)
          begin
            @link.open
            return yield
          rescue *FAILURES => e
            failure = e
          end
        end
      end

      def wait_or_raise(failure, commands)
        wait_ms = @link.again_ms(commands, @pinned, rand(1 << 32))
        close
        raise failure unless wait_ms
        raise ConnectionError, wait_ms if wait_ms.is_a?(String)

        sleep(wait_ms / 1000.0) if wait_ms.positive?
      end
    end
  end
end

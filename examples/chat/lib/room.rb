# frozen_string_literal: true

module Chat
  # The connections that a worker has taken over, served by one thread: none of them keeps the worker from its requests,
  # and a client that does not read keeps nobody waiting.
  class Room
    LOOK_SECONDS = 0.1   # at the journal, while somebody listens
    PING_SECONDS = 20    # shows who has gone without a word
    FAREWELL_SECONDS = 1 # for what is still to be written when the worker ends

    def initialize(journal)
      @journal = journal
      @lock = Mutex.new
      @newcomers = []
      @peers = {}
    end

    # From the worker's thread: `peer` is served from now on.
    def enter(peer)
      @lock.synchronize do
        @newcomers << peer
        @thread = start unless @thread&.alive? # here and not at load time: a fork keeps no threads
        @bell.write_nonblock(".", exception: false)
      end
    end

    # When the worker ends: a good-bye to everybody, who will find another worker.
    def leave
      @lock.synchronize do
        return unless @thread

        @leaving = true
        @bell.write_nonblock(".", exception: false)
      end
      @thread.join(FAREWELL_SECONDS * 2)
    end

    private

    def start
      @peers.each_key(&:close) # of the process that this one was forked from, which serves them
      @peers.clear
      @ear, @bell = IO.pipe
      @pinged = now
      Thread.new { serve }
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def serve
      until @leaving
        turn(@peers.empty? ? nil : LOOK_SECONDS)
        deliver
        ping
      end
      welcome # whoever came in the last moment gets a good-bye too
      @peers.each_value { |peer| guard(peer, &:farewell) }
      deadline = now + FAREWELL_SECONDS
      turn(deadline - now) while @peers.any? && now < deadline
    end

    # Waits for something to happen, and lets those to whom it happens act.
    def turn(seconds)
      writers = @peers.values.select(&:unsent?).map(&:io)
      readable, writable = IO.select([@ear, *@peers.keys], writers, nil, seconds)
      welcome if readable&.delete(@ear)
      writable&.each { |io| guard(@peers[io], &:flush) if @peers[io] }
      readable&.each { |io| guard(@peers[io], &:read) if @peers[io] }
    end

    def welcome
      @ear.read_nonblock(1000, exception: false)
      @lock.synchronize { @newcomers.slice!(0..) }.each do |peer|
        @peers[peer.io] = peer
        guard(peer, &:begin)
      end
    end

    def deliver
      size = @journal.size
      found = Hash.new { |known, place| known[place] = @journal.after(place) }
      @peers.values.each { |peer| guard(peer) { peer.catch_up(found) } if peer.place && peer.place < size }
    end

    def ping
      return if now - @pinged < PING_SECONDS

      @pinged = now
      @peers.values.each { |peer| guard(peer, &:ping) }
    end

    # What goes wrong with one is the end of that one.
    def guard(peer)
      yield peer
    rescue SystemCallError, IOError
      peer.finish
    rescue StandardError => e
      warn "chat: #{e.full_message(highlight: false)}"
      peer.finish
    ensure
      @peers.delete(peer.io) if peer.finished?
    end
  end
end

# frozen_string_literal: true

module Bench
  # Many connections that have been answered once and then say nothing: held by a process of its own, on the client's
  # core.
  class IdleConnections
    SECONDS = 15
    BATCH = 250
    # Beside them: files of this process and of the server.
    SPARE_FDS = 500

    # How many this machine's limit of open files lets one process hold.
    def self.possible(wanted) = [wanted, Process.getrlimit(:NOFILE)[1] - SPARE_FDS].min

    attr_reader :held

    # Tries to have `count` of them within SECONDS; `held` says how many there are.
    def initialize(running, request, count)
      reader, writer = IO.pipe
      @pid = fork do
        Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE)[1])
        sockets = open_all(running, request.to_s, count)
        writer.puts(sockets.size)
        sleep
      end
      writer.close
      # A server whose queue is full lets even the connecting wait.
      @held = IO.select([reader], nil, nil, SECONDS + 2) ? reader.gets.to_i : 0
      reader.close
    end

    def close
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def open_all(running, text, count)
      deadline = now + SECONDS
      held = []
      while held.size < count && now < deadline
        # The first ones few: a server that cannot hold even those is not to block us in connect().
        batch = Array.new([held.empty? ? 10 : BATCH, count - held.size].min) { running.connect.tap { |socket| socket.write(text) } }
        answered = answered_of(batch, deadline)
        held.concat(answered)
        break if answered.size < batch.size
      end
      held
    rescue SystemCallError
      held
    end

    def answered_of(batch, deadline)
      waiting = batch.dup
      answered = []
      until waiting.empty? || now > deadline
        ready, = IO.select(waiting, nil, nil, 1)
        break unless ready

        ready.each { |socket| answered << socket if socket.read_nonblock(4096, exception: false) }
        waiting -= ready
      end
      answered
    end
  end
end

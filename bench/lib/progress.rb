# frozen_string_literal: true

module Bench
  # What happens now and how long it will go on, on one line of a terminal; elsewhere a line now and then.
  class Progress
    PAUSE_S = 15

    def initialize(seconds)
      @end = now + seconds
      @terminal = $stderr.tty?
      @told = 0
    end

    def remaining_s = [@end - now, 1].max

    def call(text)
      line = format("%3d:%02d left  %s", *remaining_s.round.divmod(60), text)
      if @terminal
        $stderr.print "\r\e[K#{line[0, 110]}"
      elsif now - @told > PAUSE_S
        @told = now
        warn line
      end
    end

    def clear = @terminal && $stderr.print("\r\e[K")

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

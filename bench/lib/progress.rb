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

    # For work whose time nobody knows before: the time that is left follows from the share that is done.
    def done(share, text)
      @started ||= now
      return unless share.positive?

      @end = now + (now - @started) * (1 - share) / share
      call(text)
    end

    def clear = @terminal && $stderr.print("\r\e[K")

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

# frozen_string_literal: true

require_relative "native"

module E2E
  # A driver of bench/load or e2e/load beside a test: SOURCE and BINARY of its class, its lines, its end.
  class NativeDriver
    # By force; nothing where its end was read.
    def stop
      return if @io.closed?

      Process.kill(:KILL, @io.pid)
      @io.close
    end

    private

    # mode: "r+" where it reads lines, too.
    def begin_driver(*words, mode: "r", flags: [])
      Native.build(self.class::SOURCE, self.class::BINARY, *flags)
      @io = IO.popen([self.class::BINARY, *words].map(&:to_s), mode)
    end

    # nil: it has ended.
    def read_line(seconds)
      @io.wait_readable(seconds) or raise Timeout, "#{File.basename(self.class::BINARY)} says nothing"
      @io.gets
    end
  end
end

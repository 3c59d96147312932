# frozen_string_literal: true

require "io/console"
require "pty"

module E2E
  # A command on a terminal of its own, whose session it leads.
  class Terminal
    attr_reader :pid, :status

    def initialize(*argv, rows: 24, columns: 80, env: {})
      @bytes = +"".b
      @lock = Mutex.new
      sized = ["sh", "-c", "stty rows #{rows} cols #{columns}; exec \"$@\"", "sh"]
      @output, @input, @pid = PTY.spawn({ "TERM" => "xterm", "NO_COLOR" => nil, **env }, *sized, *argv)
      @thread = Thread.new { loop { take(@output.readpartial(4096)) } rescue nil } # ends with the terminal
    end

    # All bytes that came so far.
    def bytes = @lock.synchronize { @bytes.dup }

    # What stands on the screen after the last whole frame: lines without escape sequences.
    def lines = frame.gsub(/\e\[[0-9;?]*[A-Za-z]/, "").split(/\r+\n/)

    # The last whole frame as it came.
    def frame = bytes.scan(/\e\[H(.*?)\e\[J/m).last.to_a.first.to_s

    def frames = bytes.scan("\e[J").size

    # What matches in a whole frame, or in all that came.
    def await(pattern) = wait_for(pattern) { lines.join("\n") }
    def await_bytes(pattern) = wait_for(pattern) { bytes }

    # The terminal shows nothing more (after Ctrl-S): no frame comes for several intervals.
    def await_stop
      E2E.wait_until("the terminal to stop") do
        before = frames
        IO.select(nil, nil, nil, 0.3)
        before == frames
      end
    end

    def type(keys) = @input.write(keys)

    def resize(rows, columns) = @input.winsize = [rows, columns]

    # Modes of the terminal, as stty has them.
    def modes = IO.popen(%w[stty -a], in: @output, &:read)

    # The user closes the window.
    def hang_up
      @thread.kill.join
      [@output, @input].each { |io| io.close unless io.closed? }
    end

    def signal(name) = Process.kill(name, @pid)

    def wait
      E2E.wait_until("the command on the terminal to end") { ended? }
      @thread.join(E2E.patience) # reads to the end, which does not come while somebody else has the terminal
      @status
    end

    def ended? = Process.wait2(@pid, Process::WNOHANG)&.then { |_, status| @status = status }

    def cleanup
      Process.kill(:KILL, @pid) && Process.wait(@pid) unless @status
      hang_up
    end

    private

    def wait_for(pattern)
      E2E.wait_until("a terminal to show it") { yield[pattern] }
    rescue Timeout
      raise Timeout, "#{pattern.inspect} is not on the terminal: #{bytes[-4000..].inspect}\n#{lines.join("\n")}"
    end

    def take(bytes) = @lock.synchronize { @bytes << bytes }
  end
end

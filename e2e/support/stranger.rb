# frozen_string_literal: true

require "json"

module E2E
  # A client that others have written: a program of e2e/strangers with a library's client of WebSockets or event
  # streams. It takes commands and tells of events, each a line of JSON, an array:
  #
  #   open URL [PROTOCOLS]   open PROTOCOL|null; refused STATUS|null
  #   text, binary           text, binary: what has come; bytes as base64
  #   fragments [PARTS]      one text message in fragments
  #   ping TEXT              pong TEXT
  #   close CODE REASON      closed CODE REASON: the end, whoever has begun it
  #   cut                    ends the connection without a Close frame
  #
  # and for event streams: open URL; event TYPE DATA ID; error STATE.
  class Stranger
    DIR = File.join(ROOT, "e2e/strangers")
    MODULES = File.join(ROOT, "build/bench/node_modules") # where script/setup installs packages of npm

    def initialize(*argv, authority: nil)
      env = { "CA" => authority, "NODE_EXTRA_CA_CERTS" => authority, "NODE_PATH" => MODULES, "LD_PRELOAD" => nil, "PYTHONDONTWRITEBYTECODE" => "1" }
      @name = argv[1]
      @log = File.join(Dir.tmpdir, "stranger-#{$$}-#{object_id}")
      @io = IO.popen([env, *argv, { err: @log, chdir: DIR }], "r+")
      @read = +"".b
    end

    def command(*words)
      @io.puts(JSON.generate(words))
      self
    end

    # The next event: an array.
    def event
      more until (line = @read.slice!(/\A.*\n/n))
      JSON.parse(line)
    end

    def ask(*words) = command(*words).event

    def kill = Process.kill(:KILL, @io.pid)

    def close
      kill
      @io.close
      FileUtils.rm_f(@log)
    end

    private

    def more
      deadline = E2E.deadline(DEADLINE)
      loop do
        bytes = @io.read_nonblock(1 << 20, exception: false)
        raise "#{@name} has ended: #{File.read(@log)}" if bytes.nil?
        return @read << bytes if bytes.is_a?(String)

        @io.wait_readable([deadline - E2E.clock, 0].max) or raise Timeout, "waited for #{@name}: #{File.read(@log)}"
      end
    end
  end
end

# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "flame"
require_relative "throughput"

module Bench
  # One server under one workload, looked into: perf for where its time goes, strace for its system calls.
  class Profile
    FOLDER = File.join(ROOT, "build/bench/profile")
    FLAME = File.join(ROOT, "build/bench/node_modules/d3-flame-graph/dist/templates/d3-flamegraph-base.html")
    TOP = 12
    HERTZ = 1999
    STRACE_S = 1.5
    VALGRIND_START_S = 120
    PERF_START_S = 10

    # svg: a folder for the flame graph as a small picture, or nil.
    def initialize(context, peer, workload, svg: nil)
      @svg = svg
      @context = context
      @peer = peer
      @workload = workload
      @settings = workload.settings
      @request = @settings[:request].call
    end

    # Prints the costliest functions and the system calls; leaves the flame graph in FOLDER.
    def run(seconds)
      running = start
      FileUtils.mkdir_p(FOLDER)
      load(running, 1)
      stacks = sample(running, seconds)
      raise "perf took no samples of #{@peer.name}" if stacks.empty?

      title = "#{@workload.name_of}, #{@peer.name}"
      path = write(stacks, title)
      puts "#{title}: #{stacks.values.sum} samples, #{path.delete_prefix("#{ROOT}/")}"
      top(stacks).each { |name, share| puts format("  %5.1f %%  %s", share * 100, name) }
      calls(running)
    ensure
      running&.stop
    end

    # The instructions of the whole tree for more requests less those for fewer: what one request takes, whatever else
    # the machine does.
    def instructions
      few, many = [2_000, 6_000].map { |count| counted(count) }
      puts format("%s, %s: %.0f instructions a request", @workload.name_of, @peer.name, (many - few) / 4_000.0)
    end

    private

    def start(**more)
      close = @settings[:close]
      Running.new(@peer, @context, app: @settings[:app], close: close, **more).start
    end

    def wrk
      @wrk ||= begin
        path = @request.body && File.join(@context.scratch("body"), "body").tap { |name| File.binwrite(name, @request.body) }
        Wrk.new(@context, @request, connections: @settings[:connections], body_path: path, pipeline: @settings[:pipeline])
      end
    end

    def load(running, seconds) = wrk.run(running.listen, seconds)

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # The process that answers: the one whose clock goes on under load.
    def worker(running)
      running.workers.map(&:pid).max_by { |pid| ProcessTree.cpu_of(pid) }
    end

    # { "outer;inner;..." => samples }
    def sample(running, seconds)
      pid = worker(running)
      data = File.join(FOLDER, "perf.data")
      # Addresses from the stack itself: neither Ruby nor Perl keeps frame pointers.
      recorder = spawn("perf", "record", "-q", "-F", HERTZ.to_s, "--call-graph", "dwarf,8192", "-e", event, "-p", pid.to_s, "-o", data,
                       err: @context.log)
      deadline = now + PERF_START_S
      sleep 0.02 until File.size?(data) || now > deadline
      load(running, seconds)
      Process.kill(:INT, recorder)
      Process.wait(recorder)
      fold(IO.popen(["perf", "script", "-i", data, "--no-inline", "-F", "comm,pid,ip,sym,dso", err: File::NULL], &:readlines))
    ensure
      FileUtils.rm_f(data) if data
    end

    # Hardware cycles where there are some.
    def event
      @event ||= begin
        told = IO.popen(["perf", "stat", "-e", "cycles", "true", err: %i[child out]], &:read)
        told.match?(/not supported|not counted|[Ee]rror/) ? "cpu-clock" : "cycles"
      end
    end

    # perf prints a head line, then a frame a line, the innermost first, then an empty line.
    def fold(lines)
      stacks = Hash.new(0)
      frames = []
      lines.each do |line|
        if line.strip.empty?
          stacks[frames.reverse.join(";")] += 1 unless frames.empty?
          frames = []
        elsif (found = line.match(/\A\s+\h+\s+(.+?)\s+\(([^)]*)\)\s*\z/))
          frames << (found[1] == "[unknown]" ? "[#{File.basename(found[2])}]" : found[1].tr(";", ":"))
        end
      end
      stacks
    end

    # By the innermost frame: what a function itself takes.
    def top(stacks)
      own = stacks.each_with_object(Hash.new(0)) { |(stack, count), sums| sums[stack.rpartition(";").last] += count }
      total = own.values.sum.to_f
      own.max_by(TOP) { |_, count| count }.map { |name, count| [name, count / total] }
    end

    def write(stacks, title)
      base = File.join(FOLDER, "#{@workload.name_of}-#{@peer.key}")
      File.write("#{base}.folded", stacks.sort.map { |stack, count| "#{stack} #{count}\n" }.join)
      return picture(stacks, title) if @svg
      raise "flame graphs want d3-flame-graph (script/setup bench), or --svg" unless File.exist?(FLAME)

      page = File.read(FLAME)
      page = page.sub("/** @flamegraph_json **/") { JSON.generate(tree(stacks), max_nesting: 0) }
      page = page.sub("/** @options_json **/") { JSON.generate({ title: title }) }
      "#{base}.html".tap { |path| File.write(path, page) }
    end

    def picture(stacks, title)
      FileUtils.mkdir_p(@svg)
      File.expand_path("#{@workload.name_of}-#{@peer.key}.svg", @svg).tap { |path| File.write(path, Flame.new(stacks, title).to_s) }
    end

    def tree(stacks)
      root = { n: "all", v: 0, c: {} }
      stacks.each do |stack, count|
        root[:v] += count
        stack.split(";").reduce(root) do |node, name|
          child = node[:c][name] ||= { n: name, v: 0, c: {} }
          child[:v] += count
          child
        end
      end
      listed(root)
    end

    def listed(node) = { name: node[:n], value: node[:v], children: node[:c].values.map { |child| listed(child) } }

    def calls(running)
      output = File.join(FOLDER, "strace")
      tracer = spawn("strace", "-f", "-c", "-q", "-o", output, "-p", worker(running).to_s, err: @context.log)
      found = load(running, STRACE_S)
      Process.kill(:INT, tracer)
      Process.wait(tracer)
      counts = File.readlines(output).filter_map { |line| line.match(/^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?([a-z]\w+)\s*$/)&.captures }
      counts.reject! { |_, call| call == "total" }
      each = counts.map { |count, call| [count.to_f / found.requests, call] }.select { |share, _| share > 0.005 }.sort.reverse
      puts "  system calls a request: #{each.map { |share, call| format("%s %.2f", call, share) }.join(", ")}"
    ensure
      FileUtils.rm_f(output) if output
    end

    # Instructions of a server that answers so many requests on one connection and stops, under valgrind.
    def counted(count)
      folder = @context.scratch("callgrind")
      peer = Peer.new(@peer.key, @peer.name, @peer.kind, stop: @peer.stop, command: lambda do |site|
        env, argv = @peer.command(site)
        [env, ["valgrind", "--tool=callgrind", "--trace-children=yes", "-q", "--callgrind-out-file=#{folder}/%p", *argv]]
      end)
      running = Running.new(peer, @context, app: @settings[:app]).start(within_s: VALGRIND_START_S)
      ask(running, count)
      running.stop
      Dir["#{folder}/*"].sum { |path| File.read(path)[/^(?:summary|totals): (\d+)/, 1].to_i }
    ensure
      running&.stop
    end

    def ask(running, count)
      socket = running.connect
      text = @request.to_s
      count.times do
        socket.write(text)
        buffer = socket.readpartial(65_536)
        buffer << socket.readpartial(65_536) until buffer.include?("\r\n\r\n") && whole?(buffer)
      end
    ensure
      socket&.close
    end

    def whole?(buffer)
      head, body = buffer.split("\r\n\r\n", 2)
      body.bytesize >= head[/^content-length: *(\d+)/i, 1].to_i
    end
  end
end

# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "../../e2e/support/waiting"
require_relative "tally"

# One command of a suite: what to run, how to count (a method of Tally), and where.
# picked: only some of its cases are asked for, and there may be none of them in it.
Command = Struct.new(:argv, :count, :dir, :env, :picked, keyword_init: true) do
  def name = [*env&.values, argv.join(" ")].join(" ").gsub("#{ROOT}/", "")
end

# The commands of one part: Schedule takes them, at most `width` at a time; each has a deadline. All that they print
# goes to build/test/NAME.log, command by command.
class Suite
  SECONDS = 540 # for one command on a machine that has nothing else to do
  SECONDS_TO_END = 10
  SECONDS_EXPECTED = 5 # of a command that nobody has timed
  TELLING = /^\s*not\ ok|^\s*\#\s+Failed|^\s+\d+\)\ (Failure|Error)|^\w+\#\w+|^Expected|^\s*Actual:|(Error|Exception|Timeout):|
             \(Wstat:|Parse\ errors|Non-zero|:\ error:|runtime\ error|ended\ after/x
  WELL = /^\s*ok\b| = \d+\.\d+ s = [.S]$/ # of TAP and of minitest in detail
  CASE = /^(\w+#\S+) = (\d+\.\d+) s = /   # of minitest in detail

  # Tests are about what they set themselves, not about who runs them.
  ENVIRONMENT = { "LC_ALL" => "C.UTF-8", "LANGUAGE" => nil, "RUBYOPT" => nil, "RUBYLIB" => nil, "PERL5OPT" => nil, "PERL5LIB" => nil,
                  "MAKEFLAGS" => nil, "MFLAGS" => nil, "MAKELEVEL" => nil, "NOTIFY_SOCKET" => nil, "LISTEN_FDS" => nil, "LISTEN_PID" => nil,
                  "HARNESS_OPTIONS" => nil, "MINITEST_REPORTER" => nil, "TESTOPTS" => nil, "XDG_RUNTIME_DIR" => nil, "NO_COLOR" => nil,
                  "no_proxy" => "localhost,127.0.0.1,::1", "NO_PROXY" => "localhost,127.0.0.1,::1" }.freeze
  UMASK = 0o022

  # Waiters of the commands that run, and their suites. An interrupted run ends them: their groups get no signal.
  RUNNING = {}
  at_exit do
    @ending = true
    RUNNING.dup.each { |waiter, suite| suite.end_group(waiter) }
  end

  def self.ending? = @ending

  # Runs a command, then writes the seconds of processor of all that it has started and waited for: the second line of
  # what times(1posix) says.
  TIMED = 'trap : TERM; "$@"; code=$?; times >"$0"; exit $code'

  attr_reader :name, :kind, :tally, :failures, :seconds_of, :slow, :processor

  # The block gives the commands, and may build what they need first. slower: how many times as long they may take.
  # told: all they print is shown too. width: how many commands at a time. kind: of Schedule::ORDERS.
  def initialize(name, slower: 1, told: false, width: 1, kind: :serial, &commands)
    @name = name
    @commands = commands
    @seconds_max = SECONDS * slower
    @told = told
    @width = width
    @kind = kind
    forget({})
  end

  # The same again, with nothing counted. times: seconds that commands took before.
  def fresh(times) = dup.tap { |suite| suite.forget(times) }

  # --- for Schedule, which calls these under its lock, but for release ---

  # What to do next, to be called outside of the lock: the commands are made first, then they run. nil: nothing now.
  def take
    if @waiting.nil?
      return if @preparing

      @preparing = true
      @started = clock
      begun { prepare }
    elsif @waiting.any? && @running < @width
      command = @waiting.shift
      begun { run_command(command) }
    end
  end

  # Is there, or will there be, something to take?
  def more? = @waiting.nil? || @waiting.any?

  # After a step; true when it was the last.
  def release
    @lock.synchronize do
      @running -= 1
      return false if @running.positive? || more? || @over

      @seconds = clock - @started
      @over = true
    end
  end

  # --- what is told ---

  def summary = [format("%-12s %s (%d s, %d s of processor)", name, tally, @seconds || 0, @processor.values.sum), *tally.skips]

  # "core 12/190"; nil when it is not begun or over.
  def state = @preparing && !@over ? "#{name} #{@waiting ? "#{@count - @waiting.size - @running}/#{@count}" : "building"}" : nil

  # Seconds of its commands: those that have passed, and those that are left, by what they took before or by their
  # siblings.
  def seconds_done_and_left
    @lock.synchronize do
      mean = @seconds_of.empty? ? SECONDS_EXPECTED : @seconds_of.values.sum / @seconds_of.size
      running = @begun.map { |command, since| [@times[command.name] || mean, clock - since] }
      done = @seconds_of.values.sum + running.sum(&:last)
      left = running.sum { |expected, passed| [expected - passed, 0].max } + [*@waiting].sum { |command| @times[command.name] || mean }
      [done, left + (@waiting ? 0 : SECONDS_EXPECTED)]
    end
  end

  def log_path = File.join(LOGS, "#{name}.log")

  # A command gets a moment to end what it has started.
  def end_group(waiter)
    Process.kill(:TERM, -waiter.pid)
    waiter.join(SECONDS_TO_END) or Process.kill(:KILL, -waiter.pid)
    waiter.join
  rescue Errno::ESRCH # gone meanwhile
    nil
  end

  protected

  def forget(times)
    @times = times
    @lock = Mutex.new
    @tally = Tally.new
    @failures = []
    @slow = []
    @processor = {}
    @seconds_of = {}
    @begun = {}.compare_by_identity
    @running = 0
    @waiting = @preparing = @over = nil
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def begun(&step)
    @lock.synchronize { @running += 1 }
    lambda do
      step.call
    rescue StandardError => e
      @lock.synchronize { fail_with(e) }
    end
  end

  def prepare
    File.write(log_path, "")
    commands = @commands.call
    @count = commands.size
    @waiting = @width > 1 ? longest_first(commands) : commands
  ensure
    @waiting ||= []
    @count ||= 0
  end

  # So that none of them runs on alone. In the order given where nothing is known.
  def longest_first(commands) = commands.each_with_index.sort_by { |command, i| [-(@times[command.name] || 0), i] }.map(&:first)

  def fail_with(error)
    @tally += Tally.new(failed: 1)
    @failures << "#{error.class}: #{error.message}"
  end

  def run_command(command)
    started = clock
    @lock.synchronize { @begun[command] = started }
    dir = temporary_folder
    path = "#{log_path}.#{File.basename(dir)}"
    status = File.open(path, "w") { |log| spawn_with_deadline(command, log, dir) }
    output = File.binread(path).force_encoding("UTF-8").scrub
    File.unlink(path)
    processor = processor_seconds("#{dir}/times")
    one = Tally.public_send(command.count, output, status&.success?)
    one = Tally.new if command.picked && output.match?(/^0 runs, 0 assertions, 0 failures, 0 errors/)
    @lock.synchronize { add(command, one, output, clock - started, processor) }
  ensure
    FileUtils.rm_rf(dir) if dir
  end

  # Of one command. Its name is short, since the path of a unix socket has 103 bytes.
  def temporary_folder
    dir = File.join(Dir.tmpdir, "o#{rand(36**5).to_s(36)}")
    Dir.mkdir(dir)
    File.chmod(0o1777, dir) # for servers that run as another user
    dir
  rescue Errno::EEXIST
    retry
  end

  # 0: the command was ended from outside.
  def processor_seconds(path)
    return 0 unless File.exist?(path)

    File.readlines(path).last.to_s.scan(/(\d+)m([\d.]+)s/).sum { |minutes, seconds| 60 * minutes.to_i + seconds.to_f }
  end

  def add(command, tally, output, seconds, processor)
    File.write(log_path, format("$ %s\n%stook %.1f s and %.1f s of processor\n", command.name, output, seconds, processor), mode: "a")
    @failures << [command.name, *telling_lines(output)].join("\n") unless @told || tally.failed.zero?
    @tally += tally
    @begun.delete(command)
    @seconds_of[command.name] = seconds.round(1)
    @processor[command.name] = processor
    cases = output.scan(CASE).map { |name, time| [time.to_f, [*command.env&.values, name].join(" ")] }
    @slow.concat(cases.empty? ? [[seconds, command.name]] : cases)
    $stdout.puts "$ #{command.name}", output if @told
  end

  # The child gets a process group of its own, so that all that it started can be ended when its time is over.
  def spawn_with_deadline(command, log, dir)
    return if self.class.ending?

    env = { **ENVIRONMENT, "TMPDIR" => dir, **command.env.to_h }
    argv = ["sh", "-c", TIMED, "#{dir}/times", *command.argv]
    pid = spawn(env, *argv, chdir: command.dir || ROOT, in: File::NULL, out: log, err: log, pgroup: true, umask: UMASK)
    waiter = Process.detach(pid)
    RUNNING[waiter] = self
    started = clock
    until clock - started > @seconds_max * E2E.patience
      return waiter.value if waiter.join(1)
    end
    log.puts "ended after #{(clock - started).round} s"
    end_group(waiter)
    nil
  ensure
    RUNNING.delete(waiter)
  end

  def telling_lines(output)
    lines = output.lines.grep(TELLING).grep_v(WELL).map(&:chomp)
    (lines.empty? ? output.lines.map(&:chomp).last(15) : lines).first(40).map { |line| "    #{line}" }
  end
end

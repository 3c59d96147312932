# frozen_string_literal: true

require_relative "tally"

# One command of a suite: what to run, how to count (a method of Tally), and where.
# picked: only some of its cases are asked for, and there may be none of them in it.
Command = Struct.new(:argv, :count, :dir, :env, :picked, keyword_init: true) do
  def name = [*env&.values, argv.join(" ")].join(" ").gsub("#{ROOT}/", "")
end

# Runs the commands of one part, `width` at a time, each with a deadline, and tells how they went. All that they print
# goes to build/test/NAME.log, command by command.
class Suite
  SECONDS = 540 # for one command on a machine that has nothing else to do
  SECONDS_TO_END = 10
  TELLING = /^\s*not\ ok|^\s*\#\s+Failed|^\s+\d+\)\ (Failure|Error)|^\w+\#\w+|^Expected|^\s*Actual:|(Error|Exception|Timeout):|
             \(Wstat:|Parse\ errors|Non-zero|:\ error:|runtime\ error|ended\ after/x
  WELL = /^\s*ok\b| = \d+\.\d+ s = [.S]$/ # of TAP and of minitest in detail

  # Waiters of the commands that run, and their suites. An interrupted run ends them: their groups get no signal.
  RUNNING = {}
  at_exit do
    @ending = true
    RUNNING.dup.each { |waiter, suite| suite.end_group(waiter) }
  end

  def self.ending? = @ending

  attr_reader :name, :tally, :failures

  # The block gives the commands, and may build what they need first. slower: how many times as long they may take.
  # told: all they print is shown too. width: for commands that wait more than they compute.
  def initialize(name, slower: 1, told: false, width: 1, &commands)
    @name = name
    @commands = commands
    @seconds_max = SECONDS * slower
    @told = told
    @width = width
    forget
  end

  # The same again, with nothing counted.
  def fresh = dup.tap(&:forget)

  def run
    started = clock
    commands = Queue.new
    File.write(log_path, "")
    @commands.call.each { |command| commands << command }
    commands.close
    Array.new(@width) { |place| Thread.new { run_commands(commands, place) } }.each(&:join)
    @seconds = clock - started
    self
  rescue StandardError => e
    fail_with(e)
    self
  end

  def summary = [format("%-12s %s (%d s)", name, tally, @seconds || 0), *tally.skips]

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

  def forget
    @lock = Mutex.new
    @tally = Tally.new
    @failures = []
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def run_commands(commands, place)
    while (command = commands.pop)
      run_command(command, "#{log_path}.#{place}")
    end
  rescue StandardError => e
    @lock.synchronize { fail_with(e) }
  end

  def fail_with(error)
    @tally += Tally.new(failed: 1)
    @failures << "#{error.class}: #{error.message}"
  end

  # `path` has the output until the command has ended.
  def run_command(command, path)
    status = File.open(path, "w") { |log| spawn_with_deadline(command, log) }
    output = File.binread(path).force_encoding("UTF-8").scrub
    File.unlink(path)
    one = Tally.public_send(command.count, output, status&.success?)
    one = Tally.new if command.picked && output.match?(/^0 runs, 0 assertions, 0 failures, 0 errors/)
    @lock.synchronize { add(command, one, output) }
  end

  def add(command, tally, output)
    File.write(log_path, "$ #{command.name}\n#{output}", mode: "a")
    @failures << [command.name, *telling_lines(output)].join("\n") unless @told || tally.failed.zero?
    @tally += tally
    $stdout.puts "$ #{command.name}", output if @told
  end

  # The child gets a process group of its own, so that all that it started can be ended when its time is over.
  def spawn_with_deadline(command, log)
    return if self.class.ending?

    pid = spawn(command.env || {}, *command.argv, chdir: command.dir || ROOT, in: File::NULL, out: log, err: log, pgroup: true)
    waiter = Process.detach(pid)
    RUNNING[waiter] = self
    return waiter.value if waiter.join(@seconds_max)

    log.puts "ended after #{@seconds_max} s"
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

# frozen_string_literal: true

require_relative "tally"

# One command of a suite: what to run, how to count (a method of Tally), and where.
# picked: only some of its cases are asked for, and there may be none of them in it.
Command = Struct.new(:argv, :count, :dir, :env, :picked, keyword_init: true) do
  def name = [*env&.values, argv.join(" ")].join(" ").gsub("#{ROOT}/", "")
end

# Runs the commands of one part after another, each with a deadline, and tells how they went. All that they print goes
# to build/test/NAME.log.
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
  # told: all they print is shown too.
  def initialize(name, slower: 1, told: false, &commands)
    @name = name
    @commands = commands
    @seconds_max = SECONDS * slower
    @told = told
    forget
  end

  # The same again, with nothing counted.
  def fresh = dup.tap(&:forget)

  def run
    started = clock
    File.open(log_path, "w") { |log| @commands.call.each { |command| run_command(command, log) } }
    @seconds = clock - started
    self
  rescue StandardError => e
    @tally += Tally.new(failed: 1)
    @failures << "#{e.class}: #{e.message}"
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
    @tally = Tally.new
    @failures = []
  end

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def run_command(command, log)
    log.puts "$ #{command.name}"
    log.flush
    offset = log.size
    status = spawn_with_deadline(command, log)
    output = File.binread(log_path, nil, offset).to_s.force_encoding("UTF-8").scrub
    one = Tally.public_send(command.count, output, status&.success?)
    one = Tally.new if command.picked && output.match?(/^0 runs, 0 assertions, 0 failures, 0 errors/)
    @failures << [command.name, *telling_lines(output)].join("\n") unless @told || one.failed.zero?
    @tally += one
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

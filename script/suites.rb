# frozen_string_literal: true

# Runs the test suites for script/test: builds, then two lanes of suites side by side, each writing build/test/<suite>.log.
# Reading order: PARTS, Suite (one command, counted), Runner.
require "fileutils"

ROOT = File.expand_path("..", __dir__)
LOGS = File.join(ROOT, "build/test")
Dir.chdir(ROOT)

# What a command printed, as numbers: TAP (C and Perl), minitest, or only its exit code.
class Tally
  attr_reader :passed, :failed, :skipped

  def initialize(passed: 0, failed: 0, skipped: 0)
    @passed = passed
    @failed = failed
    @skipped = skipped
  end

  def +(other) = Tally.new(passed: passed + other.passed, failed: failed + other.failed, skipped: skipped + other.skipped)

  def self.tap(output, success)
    lines = output.scan(/^(not ok|ok)\b(.*)$/)
    skipped, rest = lines.partition { |_, text| text.match?(/# skip/i) }
    failed = rest.count { |word, text| word == "not ok" && !text.match?(/# todo/i) }
    # A test that died, or that ran none of its plan, failed without saying so.
    failed += 1 if failed.zero? && (!success || rest.empty? && skipped.empty?)
    new(passed: rest.count { |word, _| word == "ok" }, failed: failed, skipped: skipped.size)
  end

  def self.minitest(output, success)
    runs, failures, errors, skips = output.scan(/^(\d+) runs, \d+ assertions, (\d+) failures, (\d+) errors, (\d+) skips/)
                                          .map { |line| line.map(&:to_i) }.reduce([0, 0, 0, 0]) { |a, b| a.zip(b).map(&:sum) }
    failed = failures + errors
    failed += 1 if failed.zero? && (!success || runs.zero?)
    new(passed: [runs - failures - errors - skips, 0].max, failed: failed, skipped: skips)
  end

  def self.exit_code(_output, success) = success ? new(passed: 1) : new(failed: 1)
end

# One command of a suite: what to run, how to count, and where.
Command = Struct.new(:argv, :count, :dir, :env, keyword_init: true) do
  def name = argv.join(" ").delete_prefix("#{ROOT}/")
end

# Runs the commands of one part after another with a deadline, and says how they went.
class Suite
  COMMAND_SECONDS = 540
  TELLING = /^\s*not ok|^\s*#\s+Failed|^\s+\d+\) (Failure|Error)|^\w+#\w+|(Error|Exception):|\(Wstat:|Parse errors|Non-zero|: error:|runtime error|ended after/

  attr_reader :name, :tally, :failures, :failed_commands

  def initialize(name, commands)
    @name = name
    @commands = commands
    @tally = Tally.new
    @failures = []
    @failed_commands = []
  end

  def run
    started = clock
    File.open(log_path, "w") do |log|
      @commands.call.each { |command| run_command(command, log) }
    end
    @seconds = clock - started
    self
  rescue StandardError => e
    @tally += Tally.new(failed: 1)
    @failures << "#{e.class}: #{e.message}"
    self
  end

  # What failed beside another lane runs once more with the machine to itself: a missed deadline there is no bug, a second failure is one.
  # Both runs are told. Says which commands passed now.
  def run_failed_again
    again, @failed_commands = @failed_commands, []
    File.open(log_path, "a") do |log|
      again.select do |command, first|
        @tally = Tally.new(passed: @tally.passed - first.passed, failed: @tally.failed - first.failed, skipped: @tally.skipped - first.skipped)
        before = @tally.failed
        run_command(command, log)
        @tally.failed == before
      end.map { |command, _| command.name }
    end
  end

  def summary
    skipped = tally.skipped.zero? ? "" : ", #{tally.skipped} skipped"
    format("%-12s %d passed, %d failed%s (%d s)", name, tally.passed, tally.failed, skipped, @seconds || 0)
  end

  def log_path = File.join(LOGS, "#{name}.log")

  private

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def run_command(command, log)
    log.puts "$ #{command.name}"
    log.flush
    offset = log.size
    status = spawn_with_deadline(command, log)
    output = File.binread(log_path, nil, offset).to_s.force_encoding("UTF-8").scrub
    one = Tally.public_send(command.count, output, status&.success?)
    unless one.failed.zero?
      @failures << [command.name, *telling_lines(output)].join("\n")
      @failed_commands << [command, one]
    end
    @tally += one
  end

  # The child gets a process group of its own, so that all that it started can be ended when its time is over.
  def spawn_with_deadline(command, log)
    pid = spawn(command.env || {}, *command.argv, chdir: command.dir || ROOT, in: File::NULL, out: log, err: log, pgroup: true)
    deadline = clock + COMMAND_SECONDS
    waiter = Process.detach(pid)
    return waiter.value if waiter.join(deadline - clock)

    log.puts "ended after #{COMMAND_SECONDS} s"
    Process.kill(:KILL, -pid)
    waiter.value
    nil
  end

  def telling_lines(output)
    lines = output.lines.grep(TELLING).grep_v(/^\s*ok\b/).map(&:chomp)
    (lines.empty? ? output.lines.map(&:chomp).last(15) : lines).first(40).map { |line| "    #{line}" }
  end
end

def c_tests(build)
  Dir["#{ROOT}/build/#{build}/test/*/*_test"].sort.map do |binary|
    Command.new(argv: [binary], count: :tap, dir: "#{ROOT}/core")
  end.tap { |list| raise "no C tests in build/#{build}" if list.empty? }
end

def built(*argv)
  output = IO.popen([*argv, err: %i[child out], chdir: ROOT], &:read)
  raise "#{argv.join(" ")}:\n#{output.lines.last(30).join}" unless $?.success?
end

def core_commands
  built("make", "-C", "core", "-j2", "OUT=#{ROOT}/build/core", "tests")
  c_tests("core")
end

def asan_commands
  built("make", "-C", "core", "-j2", "OUT=#{ROOT}/build/asan", "HARDEN=", "OPTIM=-O1 -g -fno-omit-frame-pointer",
        "SANITIZE=-fsanitize=address,undefined -fno-sanitize-recover=all", "tests")
  c_tests("asan").each { |command| command.env = { "UBSAN_OPTIONS" => "print_stacktrace=1" } }
end

def ruby_commands
  Dir["ruby/test/**/*_test.rb"].sort.map do |file|
    Command.new(argv: ["ruby", "-W1", "-Iruby/lib", "-Iruby/test", file], count: :minitest)
  end
end

def e2e_commands(command)
  files = Dir["e2e/*_test.rb"].sort
  files -= %w[e2e/rails_test.rb e2e/debugger_test.rb] if command == "oribi-psgi"
  files.map do |file|
    Command.new(argv: ["ruby", "-Ie2e", file], count: :minitest, env: { "E2E_COMMAND" => command })
  end
end

# Ten seconds a target among everything else, a minute when asked for by name; FUZZ_SECONDS says otherwise.
def fuzz_commands
  seconds = ENV.fetch("FUZZ_SECONDS", ARGV.include?("fuzz") ? "60" : "10")
  built("make", "-C", "core", "-j2", "OUT=#{ROOT}/build/fuzz", "fuzzers")
  Dir["#{ROOT}/build/fuzz/fuzz/*_fuzz"].sort.map do |binary|
    Command.new(argv: ["make", "fuzz", "T=#{File.basename(binary, "_fuzz")}", "S=#{seconds}"], count: :exit_code)
  end
end

# The applications of the benchmark keep their rules, and its driver sees when one is broken.
def bench_commands
  bank = %w[rack psgi].map do |app|
    Command.new(argv: ["ruby", "bench/isucon4/test/behaviour_test.rb"], count: :minitest, env: { "ISUCON4_APP" => app })
  end
  bank + %w[isucon4/test/client isucon4/test/driver test/run].map { |name| Command.new(argv: ["ruby", "bench/#{name}_test.rb"], count: :minitest) }
end

PARTS = {
  "lint" => [Suite.new("lint", lambda {
    [["script/lint"], ["tools/conformance", "--names"]].map { |argv| Command.new(argv: argv, count: :exit_code) }
  })],
  "core" => [Suite.new("core", -> { core_commands }), Suite.new("core-asan", -> { asan_commands })],
  "fuzz" => [Suite.new("fuzz", -> { fuzz_commands })],
  "ruby" => [Suite.new("ruby", -> { ruby_commands })],
  "perl" => [Suite.new("perl", lambda {
    [Command.new(argv: ["make", "test", "TEST_VERBOSE=1"], count: :tap, dir: "#{ROOT}/perl")]
  })],
  "e2e" => [Suite.new("e2e-oribi", -> { e2e_commands("oribi") }), Suite.new("e2e-psgi", -> { e2e_commands("oribi-psgi") })],
  "sanitize" => [Suite.new("sanitize", lambda {
    [Command.new(argv: ["script/sanitize", "--quick", "address"], count: :exit_code)]
  })],
  "bench" => [Suite.new("bench", -> { bench_commands })],
  "browser" => [Suite.new("browser", lambda {
    %w[board chat].product(%w[oribi oribi-psgi]).map do |page, command|
      Command.new(argv: ["ruby", "-Ie2e", "e2e/browser/#{page}_test.rb"], count: :minitest, env: { "E2E_COMMAND" => command })
    end
  })],
}.freeze

# Two lanes: the machine's cores are few, and the browser wants one for itself.
LANES = [%w[lint core core-asan], %w[ruby perl bench], %w[fuzz sanitize], %w[e2e-oribi], %w[e2e-psgi], %w[browser]].freeze
LANE_COUNT = 2

class Runner
  def initialize(parts)
    unknown = parts - PARTS.keys
    abort "script/test: no part '#{unknown.first}' (#{PARTS.keys.join(", ")})" unless unknown.empty?
    @suites = (parts.empty? ? PARTS.keys : parts).flat_map { |part| PARTS.fetch(part) }
    @needs = parts.empty? ? %w[core ruby perl] : needs(parts)
  end

  def run
    FileUtils.mkdir_p(LOGS)
    build or return report_build_failure
    queue = Queue.new
    LANES.map { |names| @suites.select { |suite| names.include?(suite.name) } }.reject(&:empty?).each { |lane| queue << lane }
    queue.close
    Array.new(LANE_COUNT) { Thread.new { run_lanes(queue) } }.each(&:join)
    run_failed_again
    report
  end

  private

  def needs(parts)
    own = { "lint" => [], "core" => %w[core], "fuzz" => [], "sanitize" => [], "ruby" => %w[ruby], "perl" => %w[perl] }
    parts.flat_map { |part| own.fetch(part, %w[ruby perl]) }.uniq
  end

  def build
    return true if @needs.empty?

    puts "building #{@needs.join(", ")}"
    $stdout.flush
    system("make", "--no-print-directory", *@needs, out: "#{LOGS}/build.log", err: %i[child out])
  end

  def report_build_failure
    puts File.readlines("#{LOGS}/build.log").last(30)
    puts "the build failed; all of it is in build/test/build.log"
    puts "0 passed, 1 failed"
    false
  end

  def run_lanes(queue)
    while (lane = queue.pop)
      lane.each do |suite|
        suite.run
        $stdout.puts suite.summary, suite.failures
        $stdout.flush
      end
    end
  end

  def run_failed_again
    @suites.reject { |suite| suite.failed_commands.empty? }.each do |suite|
      suite.run_failed_again.each { |name| puts "passed when run alone: #{name} (its failure above was beside others)" }
      suite.failed_commands.each { |command, _| puts "failed again, alone: #{command.name}" }
      $stdout.flush
    end
  end

  def report
    total = @suites.map(&:tally).reduce(:+)
    puts "logs are in build/test" unless total.failed.zero?
    puts "#{total.passed} passed, #{total.failed} failed"
    total.failed.zero?
  end
end

exit Runner.new(ARGV).run

# frozen_string_literal: true

# Runs the test suites for script/test: builds, then the commands of all suites, several at a time, each suite writing
# build/test/<suite>.log; or the files and cases that were named, one after another. Reading order: Request (the command
# line), Runner; suites/parts.rb, suites/schedule.rb, suites/suite.rb, suites/tally.rb, suites/progress.rb.
require "fileutils"
require "optparse"

ROOT = File.expand_path("..", __dir__)
LOGS = File.join(ROOT, "build/test")
Dir.chdir(ROOT)

require_relative "suites/busy"
require_relative "suites/compiler_cache"
require_relative "suites/parts"
require_relative "suites/progress"
require_relative "suites/schedule"

# What the command line asks for: `suites`, and what make builds for them.
class Request
  attr_reader :suites, :builds, :busy, :times, :slots

  def initialize(argv)
    @busy = 0
    @times = 1
    @slots = Schedule.slots
    words = options.parse(argv)
    words = %w[e2e] if words.empty? && @busy.positive?
    parts, paths = words.partition { |word| Parts::PARTS.key?(word) }
    parts = Parts::PARTS.keys & parts # in the order of their turns
    parts = (@all ? Parts::PARTS : Parts::DEFAULT).keys if words.empty?
    abort "script/test: --all has every part, and #{words.first} is one" if @all && words.any?
    ENV["E2E_TRANSPORT"] ||= "all" if @all
    @named = named(paths)
    check
    @suites = [*whole(parts), *picked]
    @builds = (parts + @named.map { |_, part, _| part }).flat_map { |part| Parts::PARTS.fetch(part).first }.uniq
    @builds = %w[core ruby perl redis-perl redis-ruby] & @builds # the core is compiled once then
  rescue OptionParser::ParseError => e
    abort "script/test: #{e.message}"
  end

  private

  def options
    OptionParser.new do |parser|
      parser.banner = "usage: script/test [PART | FILE | FOLDER]... [options]     parts: #{Parts::PARTS.keys.join(", ")}"
      parser.on("-n", "--name PATTERN", "only the cases of these names, as minitest takes it: test_of_this or /of_th/") { |pattern| @pattern = pattern }
      parser.on("--busy N", Integer, "beside N busy loops; without a part or file: e2e") { |count| @busy = count }
      parser.on("--times N", Integer, "all of it so many times") { |count| @times = count }
      parser.on("--all", "every part, not only #{Parts::DEFAULT.keys.join(", ")}; and e2e over all transports") { @all = true }
      parser.on("--slots N", Integer, "so many commands at a time (default: #{Schedule::SLOTS_PER_PROCESSOR} for each processor)") { |count| @slots = count }
    end
  end

  # [path, part, commands] of every file that was named, itself or by a folder.
  def named(words)
    words.flat_map do |word|
      files = Parts.files_of(word.delete_prefix("./").delete_prefix("#{ROOT}/"))
      abort "script/test: '#{word}' is no part (#{Parts::PARTS.keys.join(", ")}), and no test file or folder of them" if files.empty?
      files.map { |file| [file, *(Parts.file(file, @pattern) || abort("script/test: #{file} is no test that this can run alone"))] }
    end
  end

  def check
    other, = @named.find { |file,| !file.match?(Parts::PICKS_CASES) } if @pattern
    abort "script/test: -n picks cases of *_test.rb; #{other} runs as a whole" if other
    abort "script/test: -n wants a file" if @pattern && @named.empty?
  end

  def slower = 1 + @busy

  def whole(parts)
    parts.flat_map do |part|
      Parts::PARTS.fetch(part).last.map { |name, commands| suite(name, commands) }
    end
  end

  def suite(name, commands)
    Suite.new(name, slower: slower, width: Parts::WIDTHS.fetch(name, 1), kind: Parts::KINDS.fetch(name, :compute), &commands)
  end

  # One suite for all files, so that they run in the order in which they were named.
  def picked
    return [] if @named.empty?

    [Suite.new("files", slower: slower, told: true) { @named.flat_map { |_, _, commands| commands.call } }]
  end
end

class Runner
  SLOWEST = 10

  def initialize(request)
    @request = request
    @times = Progress::Times.new
  end

  def run
    FileUtils.mkdir_p(LOGS)
    started = Progress.clock
    build or return report_build_failure
    totals = Array.new(@request.times) do |i|
      puts "run #{i + 1} of #{@request.times}" if @request.times > 1
      Busy.with(@request.busy) { run_suites }
    end
    report(totals.sum(Tally.new), Progress.clock - started)
  end

  private

  def build
    return true if @request.builds.empty?

    puts "building #{@request.builds.join(", ")}"
    $stdout.flush
    started = Progress.clock
    built = Progress.of("building", @times["building"]) do
      system("make", "--no-print-directory", *@request.builds, out: "#{LOGS}/build.log", err: %i[child out])
    end
    passed = Progress.clock - started
    @times.store({ "building" => passed.round }) if passed > (@times["building"] || Progress::QUIET_SECONDS)
    built
  end

  def report_build_failure
    puts File.readlines("#{LOGS}/build.log").last(30)
    puts "the build failed; all of it is in build/test/build.log"
    puts "0 passed, 1 failed"
    false
  end

  # Tally of one run. A case that fails beside others fails: what takes long on a busy machine is waited for in the
  # tests themselves.
  def run_suites
    suites = @request.suites.map { |suite| suite.fresh(@times) }
    Schedule.new(suites, slots: @request.slots).run
    @times.store(suites.map(&:seconds_of).reduce({}, :merge))
    report_slowest(suites)
    suites.sum(Tally.new, &:tally)
  end

  def report_slowest(suites)
    slowest = suites.flat_map(&:slow).max_by(SLOWEST, &:first)
    return if slowest.size < SLOWEST

    puts "the #{SLOWEST} slowest cases:", slowest.map { |seconds, name| format("%7.1f s  %s", seconds, name) }
    dearest = suites.flat_map { |suite| suite.processor.to_a }.max_by(SLOWEST, &:last)
    puts "the #{SLOWEST} commands that took most processor:", dearest.map { |name, seconds| format("%7.1f s  %s", seconds, name) }
  end

  def report(total, seconds)
    total += Tally.new(failed: 1).tap { puts "not one case was run" } if total.passed + total.failed + total.skipped == 0
    puts "logs are in build/test" unless total.failed.zero?
    used = Process.times
    puts "took #{Progress.span(seconds)} and #{(used.cutime + used.cstime).round} s of processor"
    puts "#{total.passed} passed, #{total.failed} failed"
    total.failed.zero?
  end
end

CompilerCache.use
ENV["MT_NO_PLUGINS"] = "1" # those of all gems that are installed would be loaded for each file
exit Runner.new(Request.new(ARGV)).run

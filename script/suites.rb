# frozen_string_literal: true

# Runs the test suites for script/test: builds, then two lanes of suites side by side, each writing
# build/test/<suite>.log; or the files and cases that were named, one after another. Reading order: Request (the command
# line), Runner; suites/parts.rb, suites/suite.rb (one command, counted), suites/tally.rb.
require "fileutils"
require "optparse"

ROOT = File.expand_path("..", __dir__)
LOGS = File.join(ROOT, "build/test")
Dir.chdir(ROOT)

require_relative "suites/busy"
require_relative "suites/compiler_cache"
require_relative "suites/parts"

# What the command line asks for: `suites`, and what make builds for them.
class Request
  attr_reader :suites, :builds, :busy, :times

  def initialize(argv)
    @busy = 0
    @times = 1
    words = options.parse(argv)
    words = %w[e2e] if words.empty? && @busy.positive?
    parts, paths = words.partition { |word| Parts::PARTS.key?(word) }
    parts = Parts::PARTS.keys if words.empty?
    @named = named(paths)
    check
    @suites = [*whole(parts), *picked]
    @builds = words.empty? ? %w[core ruby perl redis-perl redis-ruby] :
              (parts + @named.map { |_, part, _| part }).flat_map { |part| Parts::PARTS.fetch(part).first }.uniq
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
      Parts::PARTS.fetch(part).last.map { |name, commands| Suite.new(name, slower: slower, width: Parts::WIDTHS.fetch(name, 1), &commands) }
    end
  end

  # One suite for all files, so that they run in the order in which they were named.
  def picked
    return [] if @named.empty?

    [Suite.new("files", slower: slower, told: true) { @named.flat_map { |_, _, commands| commands.call } }]
  end
end

class Runner
  # In the order in which a free lane takes them. The end-to-end tests, which wait for most of their time, begin, so
  # that something computes beside them; the browser wants a core for itself.
  LANES = [%w[e2e-oribi], %w[lint core core-asan core-portable core-bsd], %w[cross fuzz], %w[e2e-psgi],
           %w[portable sanitize], %w[ruby perl], %w[redis-perl redis-ruby bench], %w[browser], %w[files]].freeze
  LANE_COUNT = 2

  def initialize(request)
    @request = request
  end

  def run
    FileUtils.mkdir_p(LOGS)
    build or return report_build_failure
    totals = Array.new(@request.times) do |i|
      puts "run #{i + 1} of #{@request.times}" if @request.times > 1
      Busy.with(@request.busy) { run_suites }
    end
    report(totals.sum(Tally.new))
  end

  private

  def build
    return true if @request.builds.empty?

    puts "building #{@request.builds.join(", ")}"
    $stdout.flush
    system("make", "--no-print-directory", *@request.builds, out: "#{LOGS}/build.log", err: %i[child out])
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
    suites = @request.suites.map(&:fresh)
    queue = Queue.new
    LANES.map { |names| suites.select { |suite| names.include?(suite.name) } }.reject(&:empty?).each { |lane| queue << lane }
    queue.close
    Array.new(LANE_COUNT) { Thread.new { run_lanes(queue) } }.each(&:join)
    suites.sum(Tally.new, &:tally)
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

  def report(total)
    total += Tally.new(failed: 1).tap { puts "not one case was run" } if total.passed + total.failed + total.skipped == 0
    puts "logs are in build/test" unless total.failed.zero?
    puts "#{total.passed} passed, #{total.failed} failed"
    total.failed.zero?
  end
end

CompilerCache.use
ENV["MT_NO_PLUGINS"] = "1" # those of all gems that are installed would be loaded for each file
exit Runner.new(Request.new(ARGV)).run

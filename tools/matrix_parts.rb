# frozen_string_literal: true

# What tools/matrix runs in a row's place: the parts of the tests, and the versions that they meet there.
require "fileutils"
require "shellwords"
require_relative "../script/suites/tally"

ROOT = File.expand_path("..", __dir__)
PARTS = %w[core ruby perl redis e2e-oribi e2e-psgi rails].freeze

# One part of the tests: what is built for it, its commands, and how their output is counted.
class Part
  SECONDS_MAX = 600 # for one command
  TOLD_MAX = 6      # of a command's failures, and of a build's warnings

  # Of the end-to-end tests those that touch the runtimes and libraries: answers, bodies, handlers, streams, signals,
  # TLS. The whole takes ten minutes a row.
  SMOKE = %w[basics answers bodies handlers signals upgrade tls].freeze
  RAILS = %w[rails cable rack_line files_recipes sendfile].freeze

  MADE = {
    "core" => ["-C", "core", "OUT=#{ROOT}/build/core", "-j2", "tests"],
    "ruby" => %w[ruby], "e2e-oribi" => %w[ruby], "rails" => %w[ruby],
    "perl" => %w[perl], "e2e-psgi" => %w[perl],
    "redis" => %w[core redis-ruby redis-perl]
  }.freeze

  def initialize(name)
    @name = name
  end

  # [passed, failed, skipped, lines that tell of failures and warnings]
  def run
    FileUtils.mkdir_p("#{ROOT}/build/matrix")
    FileUtils.rm_f(log)
    MADE.fetch(@name).then { |words| make(*words) } or return [0, 1, 0, ["it does not build: build/matrix/#{@name}.log"]]
    make("-C", "redis/core", "OUT=#{ROOT}/build/redis", "-j2", "tests") if @name == "redis"
    told = warnings
    total = commands.map { |argv, env, dir, format| counted(argv, env, dir, format, told) }.sum(Tally.new)
    [total.passed, total.failed, total.skipped, told]
  end

  # The names that failed, of TAP and of minitest, whose -v tells of what passes too.
  def self.failures(output) = output.scan(/^not ok.*|^\s+\d+\) (?:Failure|Error):\n(?:\w+#\w+)/).map { |text| text.lines.last.strip }

  private

  # A command in short: its test, or all of it.
  def named(argv) = argv.find { |word| word.match?(/_test(\.rb)?\z/) }&.delete_prefix("#{ROOT}/") || argv.join(" ")

  def log = "#{ROOT}/build/matrix/#{@name}.log"
  def make(*argv) = system("make", "--no-print-directory", "-C", ROOT, *argv, out: [log, "a"], err: %i[child out])

  def warnings
    found = File.read(log).scrub.lines(chomp: true).grep(/: warning:/).uniq
    found.empty? ? [] : ["#{found.size} warnings: #{found.first(TOLD_MAX).join("; ")}"]
  end

  def counted(argv, env, dir, format, told)
    output, ok = capture(argv, env, dir)
    tally = Tally.public_send(format, output, ok)
    told << "#{named(argv)}: #{Part.failures(output).first(TOLD_MAX).join("; ")}" if tally.failed.positive?
    tally
  end

  def commands
    case @name
    when "core" then c_tests("core")
    when "ruby" then ruby_tests("ruby")
    when "perl" then perl_tests("perl")
    when "redis" then c_tests("redis") + ruby_tests("redis/ruby") + perl_tests("redis/perl")
    when "rails" then e2e("oribi", RAILS)
    else e2e(@name == "e2e-psgi" ? "oribi-psgi" : "oribi", SMOKE)
    end
  end

  def c_tests(build)
    Dir["#{ROOT}/build/#{build}/test/**/*_test"].sort.map { |test| [[test], {}, build == "core" ? "#{ROOT}/core" : "#{ROOT}/redis/core", :tap] }
  end

  def ruby_tests(dir) = Dir["#{ROOT}/#{dir}/test/*_test.rb"].sort.map { |test| [["ruby", "-W1", "-I#{dir}/lib", "-I#{dir}/test", test], {}, ROOT, :minitest] }
  def perl_tests(dir) = [[%w[make test TEST_VERBOSE=1], {}, "#{ROOT}/#{dir}", :tap]]
  def e2e(command, names) = names.map { |name| [["ruby", "-Ie2e", "e2e/#{name}_test.rb", "-v"], { "E2E_COMMAND" => command }, ROOT, :minitest] }

  def capture(argv, env, dir)
    File.open(log, "a") { |file| file.puts "$ #{argv.join(" ")}" }
    output = IO.popen(env, ["timeout", SECONDS_MAX.to_s, *argv], chdir: dir, err: %i[child out], &:read).scrub
    File.write(log, output, mode: "a")
    [output, $?.success?]
  end
end

# Names and versions, in words; what is not there is left out.
module Versions
  ASKED = {
    "Ruby" => ["ruby", "-e", "print RUBY_VERSION"],
    "rack" => ["ruby", "-rrack", "-e", "print Rack.release"],
    "Rails" => ["ruby", "-e", 'gem "railties"; print Gem.loaded_specs["railties"].version'],
    "Perl" => ["perl", "-MConfig", "-e", 'printf "%vd%s", $^V, $Config{useithreads} ? "" : " without threads"'],
    "Plack" => ["perl", "-MPlack", "-e", "print Plack->VERSION"],
    "gcc" => %w[gcc -dumpfullversion],
    "OpenSSL" => %w[pkg-config --modversion openssl],
    "nghttp2" => %w[pkg-config --modversion libnghttp2]
  }.freeze

  def self.here(wanted) = ASKED.slice(*wanted).filter_map { |name, argv| ask(argv)&.then { |version| "#{name} #{version}" } }.join(", ")

  def self.ask(argv)
    text = IO.popen(argv, err: File::NULL, &:read).strip
    text unless text.empty? || !$?.success?
  end
end

# Versions first, then a line a part.
def test_here(parts, wanted)
  puts "versions\t#{Versions.here(wanted)}"
  parts.each do |name|
    passed, failed, skipped, told = Part.new(name).run
    puts "part\t#{name}\t#{passed}\t#{failed}\t#{skipped}"
    told.each { |line| puts "told\t#{name}: #{line}" }
    $stdout.flush
  end
end

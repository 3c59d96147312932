# frozen_string_literal: true

require_relative "suite"
require_relative "../../e2e/support/pure"

# Which commands make the parts, and which of them a file is. Reading order: the commands of each kind, PARTS, FILES.
module Parts
  E2E_COMMANDS = ENV.key?("E2E_COMMAND") ? [ENV["E2E_COMMAND"]] : %w[oribi oribi-psgi]
  # The server in Perl alone, for the files of e2e/support/pure.rb.
  E2E_SUITES = [*E2E_COMMANDS, *("pure" if E2E_COMMANDS.size > 1)].freeze
  E2E_BUILDS = E2E_COMMANDS.flat_map { |command| command == "oribi" ? %w[ruby redis-ruby] : %w[perl redis-perl] }.freeze
  # End-to-end tests of one language.
  RUBY_ONLY = %w[rails rack_line cable debugger site browser/site moving sinatra ends].map { |name| "e2e/#{name}_test.rb" }.freeze
  PERL_ONLY = %w[e2e/moving_perl_test.rb].freeze
  # Their subject is the same C in both commands, or another program; oribi-psgi starts in less time.
  ONCE = %w[acme agent control crowd cut fixed fleet fleet_kubernetes frontend_attacks frontend_balancers frontend_clients frontend_counts
            frontend_deaths frontend_disk frontend_ends frontend_files frontend_files_deaths frontend_local frontend_storage frontend_use
            haproxy letter monitoring nginx saturation scarcity slow_disk socket_clients static_life tls top transports websocket_h2]
         .map { |name| "e2e/#{name}_test.rb" }.freeze
  # And their cases that Ruby alone has, or in which it does something of its own.
  RUBY_CASES = { "control" => "/config|reload|upgrade|reason/", "frontend_use" => "/keywords|handed_down|form_of|version/",
                 "letter" => "/hints/", "scarcity" => "/request/",
                 "saturation" => "/thread/", "slow_disk" => "/threads|form|mold/", "static_life" => "/thread/",
                 "tls" => "/sees|reload|upgrade|killed_workers/" }.transform_keys { |name| "e2e/#{name}_test.rb" }.freeze

  module_function

  def built(*argv)
    output = IO.popen([*argv, err: %i[child out], chdir: ROOT], &:read)
    raise "#{argv.join(" ")}:\n#{output.lines.last(30).join}" unless $?.success?
  end

  # --- C ---

  def core_make(build, *targets, **variables)
    built("make", "-C", "core", "-j2", "OUT=#{ROOT}/build/#{build}", *variables.map { |name, value| "#{name}=#{value}" }, *targets)
  end

  # Of sources that the system of ORIBI_OS does not have.
  OTHER_SYSTEMS = ENV.fetch("ORIBI_OS", "linux") == "linux" ? %r{/kqueue/} : %r{/kqueue/|_linux_test}

  def c_test(build, file) = Command.new(argv: ["#{ROOT}/build/#{build}/#{file[%r{\Acore/(test/.*)\.c\z}, 1]}"], count: :tap, dir: "#{ROOT}/core")
  def c_tests(build) = Dir["core/test/**/*_test.c"].grep_v(OTHER_SYSTEMS).sort.map { |file| c_test(build, file) }

  # As script/sanitize has it, so that the core is compiled once for both.
  SANITIZED = { HARDEN: "", OPTIM: "-O1 -g -fno-omit-frame-pointer", CC: "gcc -fsanitize=address,undefined -fno-sanitize-recover=undefined" }.freeze

  # Test programs are optimized as the server is where there is time for it.
  def core
    core_make("core", "tests", **(ENV["E2E_TRANSPORT"] == "all" ? { TEST_OPTIM: "-O2 -g" } : {}))
    redis_core_make("redis", "tests")
    c_tests("core") + redis_c_tests("redis")
  end

  def core_asan
    core_make("asan", "tests", **SANITIZED)
    redis_core_make("redis-asan", "tests", **SANITIZED)
    (c_tests("asan") + redis_c_tests("redis-asan")).each { |command| command.env = { "UBSAN_OPTIONS" => "print_stacktrace=1" } }
  end

  QUICK = { OPTIM: "-O1 -g" }.freeze # compiled in half the time

  # The build for other systems, on this one: what differs, and what stands on it.
  PORTABLE = %w[base/log base/os/os base/os/os_process base/sink base/writer event/loop event/parts event/reactor files/root
                supervisor/generation supervisor/reaper supervisor/pid_file supervisor/prefork supervisor/process supervisor/supervisor
                worker/fd_guard].freeze

  def core_portable(files = PORTABLE.map { |name| "core/test/#{name}_test.c" })
    commands = files.map { |file| c_test("portable", file) }
    core_make("portable", *commands.map { |command| command.argv.first }, ORIBI_OS: "portable", **QUICK)
    commands
  end

  # Whole servers of the same build, in short: connections over TCP and unix sockets, hand-offs between workers,
  # deadlines, killed and recycled workers, a reload, an upgrade; with oribi alone, since it is the same C.
  # script/portable has them all, with both.
  PORTABLE_SERVERS = { "persistence" => "Persistence", "limits" => "Timeouts", "listeners" => "test_tcp_v4_v6_and_unix_at_once",
                       "placement" => "test_nothing_is_lost_between_workers|test_a_call_that_sleeps", "signals" => "test_a_killed",
                       "metrics" => "test_counts_are_exact_over_recycling",
                       "control" => "test_reload_ends_when|test_upgrade_ends_when" }.freeze

  # Its tree is built before the time of the tests runs.
  def portable
    env = ["env", "E2E_COMMAND=oribi", "OPTIM=-O1 -g"] # half the time of -O2
    built(*env, "script/portable", "--build")
    files, patterns = PORTABLE_SERVERS.to_a.transpose
    argv = [*env, "script/portable", *files.map { |name| "e2e/#{name}_test.rb" }, "-n", "/#{patterns.join("|")}|check_/"]
    [Command.new(argv: argv, count: :minitest)]
  end

  # The build for macOS and the BSDs, on this system's model of kqueue: the sources that it alone has, and what stands
  # on them.
  BSD = %w[kqueue/kqueue base/os/os event/loop event/reactor supervisor/message worker/placement/handoff].freeze

  def core_bsd(files = BSD.map { |name| "core/test/#{name}_test.c" })
    commands = files.map { |file| c_test("bsd", file) }
    core_make("bsd", *commands.map { |command| command.argv.first }, ORIBI_OS: "bsd", **QUICK)
    commands
  end

  # The Redis client's C.
  def redis_core_make(build, *targets, **variables)
    built("make", "-C", "redis/core", "-j2", "OUT=#{ROOT}/build/#{build}", *variables.map { |name, value| "#{name}=#{value}" }, *targets)
  end

  def redis_c_test(build, file)
    Command.new(argv: ["#{ROOT}/build/#{build}/test/#{File.basename(file, ".c")}"], count: :tap, dir: "#{ROOT}/redis/core")
  end

  def redis_c_tests(build) = Dir["redis/core/test/*_test.c"].sort.map { |file| redis_c_test(build, file) }

  def redis_core_file(file)
    command = redis_c_test("redis", file)
    redis_core_make("redis", *command.argv)
    [command]
  end

  def core_file(file)
    return core_bsd([file]) if file.include?("/kqueue/")

    command = c_test("core", file)
    core_make("core", *command.argv)
    [command]
  end

  FUZZ_SECONDS = 120

  # Two minutes for all targets among everything else, one for a target asked for by name; FUZZ_SECONDS says otherwise.
  def fuzz(files = Dir["{core,redis/core}/fuzz/*_fuzz.c"].sort, seconds: nil)
    core_make("fuzz", "fuzzers") if files.size > 1
    redis_core_make("redis-fuzz", "fuzzers") if files.size > 1
    targets = files.flat_map { |file| fuzz_targets(file).map { |name| [file.start_with?("redis/") ? "redis-fuzz" : "fuzz", name] } }
    seconds ||= [FUZZ_SECONDS / targets.size, 2].max.to_s
    targets.map { |goal, name| Command.new(argv: ["make", "-s", goal, "T=#{name}", "S=#{ENV.fetch("FUZZ_SECONDS", seconds)}"], count: :exit_code) }
  end

  # A source is a target, or has one in each of its parts.
  def fuzz_targets(file)
    parts = File.read(file).scan(/^#ifdef FUZZ_(\w+)/).flatten.uniq
    parts.empty? ? [File.basename(file, "_fuzz.c")] : parts
  end

  # --- Ruby and Perl ---

  # In detail: then a skipped test has its reason beside it.
  def minitest(*argv, pattern: nil, env: nil)
    Command.new(argv: ["ruby", *argv, "-v", *(["-n", pattern] if pattern)], count: :minitest, env: env, picked: !pattern.nil?)
  end

  def ruby(files = Dir["ruby/test/**/*_test.rb"].sort, pattern: nil)
    files.map { |file| minitest("-W1", "-Iruby/lib", "-Iruby/test", file, pattern: pattern) }
  end

  def perl = Dir["perl/t/*.t"].sort.flat_map { |file| perl_file(file) }
  def perl_file(file) = [Command.new(argv: ["perl", "-Mblib", file.delete_prefix("perl/")], count: :tap, dir: "#{ROOT}/perl")]

  # --- the Redis client ---

  # Against a redis-server of each test's own.
  def redis_perl = [Command.new(argv: ["make", "test", "TEST_VERBOSE=1"], count: :tap, dir: "#{ROOT}/redis/perl")]

  def redis_ruby(files = Dir["redis/ruby/test/*_test.rb"].sort, pattern: nil)
    files.map { |file| minitest("-W1", "-Iredis/ruby/lib", "-Iredis/ruby/test", file, pattern: pattern) }
  end

  # As users have it: packed, unpacked and built once more.
  def redis_packaged = %w[redis/perl/packaged redis/ruby/packaged].map { |path| Command.new(argv: [path], count: :exit_code) }
  def redis_perl_file(file) = [Command.new(argv: ["perl", "-Mblib", file.delete_prefix("redis/perl/")], count: :tap, dir: "#{ROOT}/redis/perl")]

  # --- whole servers ---

  # Files that take long begin, so that none of them runs on alone, on a machine that has no times of earlier runs.
  LONG = %w[acme rails frontend_files fleet cut events transports packages deadlines control scarcity frontend_use
            signals restarts socket_clients placement frontend_files_deaths descriptors launchers sendfile websocket_h2
            saturation single websocket threads tls stops files_recipes slow_disk tutorial deploy static_life moving
            logs mishaps].map { |name| "e2e/#{name}_test.rb" }.freeze

  def e2e(command, files = LONG | Dir["e2e/*_test.rb"].sort, pattern: nil)
    files -= command == "oribi" ? PERL_ONLY : RUBY_ONLY
    files &= pure_files if command == "pure"
    files.map { |file| minitest("-Ie2e", file, pattern: pattern, env: { "E2E_COMMAND" => command }) }
  end

  def pure_files
    listed = [*E2E::PURE_FILES, *E2E::PURE_LEFT_OUT.values.flatten].map { |name| "e2e/#{name}_test.rb" }
    strays = listed - Dir["e2e/*_test.rb"] | Dir["e2e/*_test.rb"] - listed
    raise "e2e/support/pure.rb does not have, or should not have #{strays.join(" ")}" unless strays.empty?

    E2E::PURE_FILES.map { |name| "e2e/#{name}_test.rb" }
  end

  # All of them; what need not run with both commands runs with one, unless E2E_TRANSPORT=all asks for every pair.
  def whole_e2e(command)
    commands = e2e(command)
    return commands if ENV["E2E_TRANSPORT"] == "all" || command != "oribi" || !E2E_COMMANDS.include?("oribi-psgi")

    picked = RUBY_CASES.flat_map { |file, pattern| e2e(command, [file], pattern: pattern) }
    picked + commands.reject { |one| ONCE.include?(one.argv.find { |word| word.end_with?(".rb") }) }
  end

  def browser = Dir["e2e/browser/*_test.rb"].sort.flat_map { |file| E2E_COMMANDS.flat_map { |command| e2e(command, [file]) } }

  # The applications of the benchmark keep their rules, and its driver sees when one is broken.
  def bench
    bank = %w[rack psgi].map { |app| minitest("bench/isucon4/test/behaviour_test.rb", env: { "ISUCON4_APP" => app }) }
    rest = %w[isucon4/test/client isucon4/test/driver test/run test/simulate test/redis test/crowd test/frontend test/tail]
    bank + rest.map { |name| minitest("bench/#{name}_test.rb") }
  end

  def lint = [["script/lint"], ["tools/conformance", "--names"]].map { |argv| Command.new(argv: argv, count: :exit_code) }
  def sanitize = [Command.new(argv: ["script/sanitize", "--quick", "address"], count: :exit_code)]

  # The core for a processor of 64 bits, one of 32 and macOS: all of it is compiled, and of the tests those of pure
  # functions and their neighbours run, or some; make soak-cross has the rest, with s390x and musl.
  CROSS_SOME = %w[base/os/os base/log http/parser http/fields http/chunked form/urlencoded supervisor/message].freeze
  CROSS = { "aarch64" => %w[base http], "armhf" => CROSS_SOME, "macos-arm64" => %w[event redis] }.freeze
  def cross = CROSS.map { |target, tests| Command.new(argv: ["tools/cross", target, "--quick", *tests], count: :tap) }

  # script/deb's packages; make gems and make packages have what takes longer.
  def packages = [minitest("-Ie2e", "e2e/packages/deb_test.rb")]

  # part => [what make builds for it, { suite => its commands }]. In the order of their turns.
  DEFAULT = {
    "e2e" => [E2E_BUILDS, E2E_SUITES.to_h { |command| ["e2e-#{command.delete_prefix("oribi-")}", -> { whole_e2e(command) }] }],
    "core" => [%w[core], { "core" => -> { core } }],
    "lint" => [[], { "lint" => -> { lint } }],
    "perl" => [%w[perl], { "perl" => -> { perl } }],
    "ruby" => [%w[ruby], { "ruby" => -> { ruby } }],
    "redis" => [%w[redis-perl redis-ruby], { "redis-perl" => -> { redis_perl }, "redis-ruby" => -> { redis_ruby } }],
  }.freeze
  # Of script/test --all.
  MORE = {
    "core-asan" => [[], { "core-asan" => -> { core_asan } }],
    "packages" => [%w[ruby perl], { "packages" => -> { packages } }],
    "redis-packaged" => [%w[redis-perl redis-ruby], { "redis-packaged" => -> { redis_packaged } }],
    "core-portable" => [[], { "core-portable" => -> { core_portable } }],
    "core-bsd" => [[], { "core-bsd" => -> { core_bsd } }],
    "cross" => [[], { "cross" => -> { cross } }],
    "fuzz" => [[], { "fuzz" => -> { fuzz } }],
    "portable" => [[], { "portable" => -> { portable } }],
    "sanitize" => [[], { "sanitize" => -> { sanitize } }],
    "bench" => [%w[ruby perl redis-perl redis-ruby], { "bench" => -> { bench } }],
    "browser" => [%w[ruby perl], { "browser" => -> { browser } }],
  }.freeze
  PARTS = { **DEFAULT, **MORE }.freeze

  # suite => how many of its commands run at a time, if more than one.
  WIDTHS = { "core" => 2, "core-asan" => 2, "core-portable" => 2, "core-bsd" => 2, "fuzz" => 2, "e2e-oribi" => 99, "e2e-psgi" => 99 }.freeze
  # suite => which slots begin with it, as Schedule::ORDERS has it; the others compute.
  KINDS = { "e2e-oribi" => :servers, "e2e-psgi" => :servers, "portable" => :servers, "browser" => :servers,
            **%w[perl ruby redis-perl redis-ruby].to_h { |name| [name, :serial] } }.freeze

  # Which file => [part, its commands]. Of whole servers there are two to run it against.
  FILES = {
    %r{\Acore/test/(?:\w+/)+\w+_test\.c\z} => ["core", ->(file, _) { core_file(file) }],
    %r{\Aredis/core/test/\w+_test\.c\z} => ["core", ->(file, _) { redis_core_file(file) }],
    %r{\A(redis/)?core/fuzz/\w+_fuzz\.c\z} => ["fuzz", ->(file, _) { fuzz([file], seconds: "60") }],
    %r{\Aruby/test/.*_test\.rb\z} => ["ruby", ->(file, pattern) { ruby([file], pattern: pattern) }],
    %r{\Aperl/t/.*\.t\z} => ["perl", ->(file, _) { perl_file(file) }],
    %r{\Aredis/ruby/test/.*_test\.rb\z} => ["redis", ->(file, pattern) { redis_ruby([file], pattern: pattern) }],
    %r{\Aredis/perl/t/.*\.t\z} => ["redis", ->(file, _) { redis_perl_file(file) }],
    %r{\Ae2e/browser/.*_test\.rb\z} => ["browser", ->(file, pattern) { E2E_COMMANDS.flat_map { |command| e2e(command, [file], pattern: pattern) } }],
    %r{\Ae2e/packages/.*_test\.rb\z} => ["packages", ->(file, pattern) { [minitest("-Ie2e", file, pattern: pattern)] }],
    %r{\Ae2e/.*_test\.rb\z} => ["e2e", ->(file, pattern) { E2E_COMMANDS.flat_map { |command| e2e(command, [file], pattern: pattern) } }],
    %r{\Abench/.*_test\.rb\z} => ["bench", ->(file, pattern) { [minitest(file, pattern: pattern)] }],
  }.freeze

  # Only minitest can pick a case by its name.
  PICKS_CASES = /_test\.rb\z/

  def files_of(word)
    return [word] if File.file?(word)

    Dir["#{word.chomp("/")}/**/*"].select { |file| FILES.any? { |pattern, _| pattern.match?(file) } }.sort
  end

  # [part, commands] of a file; nil when it is none that this can run.
  def file(path, pattern)
    _, (part, commands) = FILES.find { |known, _| known.match?(path) }
    [part, -> { commands.call(path, pattern) }] if part
  end
end

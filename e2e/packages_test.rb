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
      E2E::RUBY ? unpack_gem(package) : system("tar", "xzf", package, "-C", target, exception: true)
      Dir["#{target}/*/"].first
    end
  end

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
      FileUtils.cp_r("#{folder}/.", "#{dir}/built")
      FileUtils.mkdir("#{dir}/hall")
      File.write("#{dir}/cc", COMPILER, perm: 0o755)
      built = E2E::RUBY ? "#{dir}/built/ext/oribi" : "#{dir}/built"
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

  # The page that people read: every option, and nothing that the formatter stumbles over.
  def assert_page(path)
    env = { "MANWIDTH" => "120", "LC_ALL" => "C.UTF-8", "MAN_KEEP_FORMATTING" => nil }
    text, code = run!("man", "--warnings", "-E", "UTF-8", "-P", "cat", "-l", path, env: env)
    assert_equal 0, code, text
    refute_match(/warning|error|POD ERRORS/i, text.lines.grep(/troff|mdoc|<standard input>|POD ERRORS/).join)
    plain = text.gsub(/\e\[[\d;]*m|.\x08/, "").gsub(/\s+/, " ")
    help, = run!(E2E::Server.binary, "--help", dir: E2E::ROOT)
    options = help.scan(/^ +(?:-\w, |    )(--\S+)/).flatten
    assert_operator options.size, :>, 50
    assert_empty(options.reject { |option| plain.include?(option) })
    plain
  end

  def skip_without_man
    skip "no man here" unless system("man", "--version", out: File::NULL, err: File::NULL)
  end

  if E2E::RUBY
    def test_man_page
      skip_without_man
      page = assert_page(File.join(folder, "man/oribi.1"))
      assert_empty(["RACK_ENV, RAILS_ENV, APP_ENV", "WEB_CONCURRENCY", "USR2", "on_worker_exit"].reject { |words| page.include?(words) })
    end

    def test_help_points_into_the_gem
      program = 'module Oribi; class Options; end; end; load "lib/oribi/options.rb"; puts Oribi::Options::PAGES'
      assert_equal ["#{File.realpath(folder)}/doc\n", 0], run!("ruby", "-e", program)
    end

    def test_another_system
      program = 'require "rbconfig"; RbConfig::CONFIG["host_os"] = "freebsd14"; load "ext/oribi/extconf.rb"'
      output, code = run!("ruby", "-e", program)
      assert_equal ["oribi: OS unsupported: the server runs on Linux, and this is freebsd14.\n", 1], [output, code]
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

    def test_man_page
      skip_without_man
      path = File.join(self.class.target, "oribi-psgi.1")
      assert_equal 0, run!("podchecker", "bin/oribi-psgi").last
      assert_equal 0, run!("pod2man", "--section=1", "--name=ORIBI-PSGI", "bin/oribi-psgi", path).last
      page = assert_page(path)
      assert_empty(["PLACK_ENV, DANCER_ENVIRONMENT, MOJO_MODE", "USR2", "options.md"].reject { |words| page.include?(words) })
    end

    def test_pages_are_installed_and_found
      output, code = run!("perl", "Makefile.PL")
      assert_equal 0, code, output
      rules = File.read(File.join(folder, "Makefile"))
      assert_match(%r{doc/options\.md'?\s+'?(\$\(INST_LIB\)|blib/lib)/Oribi/doc/options\.md}, rules)
      home = File.join(self.class.target, "installed/lib/Oribi")
      FileUtils.mkdir_p(home)
      FileUtils.cp(File.join(folder, "lib/Oribi/Settings.pm"), home)
      FileUtils.cp_r(File.join(folder, "doc"), home)
      program = "require '#{home}/Settings.pm'; print Oribi::Settings::pages()"
      assert_equal [File.realpath("#{home}/doc"), 0], run!("perl", "-X", "-Iblib/lib", "-Iblib/arch", "-e", program, dir: File.join(E2E::ROOT, "perl"))
    ensure
      FileUtils.rm_f(%w[Makefile MYMETA.json MYMETA.yml].map { |name| File.join(folder, name) })
    end

    def test_another_system
      output, code = run!("perl", "-e", 'BEGIN { $^O = "freebsd" } do "./Makefile.PL"; die $@ if $@')
      assert_equal ["OS unsupported: the server runs on Linux, and this is freebsd.\n", 0], [output, code]
      refute File.exist?(File.join(folder, "Makefile"))
    end
  end
end

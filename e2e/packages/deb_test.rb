# frozen_string_literal: true

require_relative "../support"
require_relative "../support/askers"
require_relative "../support/packaged"
require_relative "../support/unit"
require "open3"
require "rbconfig"

# What script/deb builds, without installing it: the packages' contents, and their commands, units and maintainer
# scripts run from a folder. Installed they are tested by e2e/packaged (make packages). One build serves both packages.
E2E.suite("deb", transports: %i[tcp]) do
  def self.packages
    @packages ||= begin
      E2E::Packaged.missing("dh" => "debhelper", "dpkg-buildpackage" => "dpkg-dev")&.then { |reason| next { skip: reason } }
      E2E::Packaged.build
    end
  end

  # The package, unpacked once.
  def self.unpacked(name)
    (@unpacked ||= {})[name] ||= Dir.mktmpdir("oribi-deb").tap do |dir|
      Minitest.after_run { FileUtils.remove_entry(dir) }
      system("dpkg-deb", "--raw-extract", packages.fetch(name), dir, exception: true)
    end
  end

  def setup
    super
    reason = self.class.packages[:skip]
    skip reason if reason
    @dir = Dir.mktmpdir("oribi-deb")
  end

  def teardown
    super
    FileUtils.remove_entry(@dir) if @dir
  end

  def kinds = E2E::Packaged::KINDS
  def root(kind) = self.class.unpacked(kind.name)

  # The library of the unpacked package in place of the installed one.
  def environment(kind)
    folders = kind.library_folders(root(kind))
    assert(folders.all? { |folder| File.directory?(folder) }, folders.inspect)
    { kind.library_variable => folders.join(":"), "GEM_PATH" => nil, **%w[RACK_ENV PLACK_ENV].to_h { |name| [name, "production"] } } # as in the units
  end

  def run!(*words, env: {})
    output, status = Open3.capture2e(env, *words)
    [output, status.exitstatus]
  end

  def command(kind, *words) = run!("#{root(kind)}/usr/bin/#{kind.name}", *words, env: environment(kind))

  def test_everything_is_where_debian_has_it
    kinds.each do |kind|
      name = kind.name
      expected = ["usr/bin/#{name}", "usr/lib/#{name}/servers", "etc/logrotate.d/#{name}", kind.config("example"),
                  "usr/share/bash-completion/completions/#{name}", "usr/share/zsh/vendor-completions/_#{name}",
                  "usr/share/fish/vendor_completions.d/#{name}.fish", "usr/share/doc/#{name}/copyright",
                  "usr/share/doc/#{name}/changelog.Debian.gz", "usr/share/doc/#{name}/doc/options.md", *kind.own_files]
      assert_empty(expected.reject { |path| File.size?(File.join(root(kind), path)) }, name)
      assert_equal 1, Dir["#{root(kind)}/{usr/,}lib/systemd/system/#{name}@.service"].size
      assert_equal 1, Dir["#{root(kind)}/usr/**/#{kind.extension}"].size, "one extension"
      conffiles = File.readlines("#{root(kind)}/DEBIAN/conffiles", chomp: true)
      assert_equal ["/#{kind.config("example")}", "/etc/logrotate.d/#{name}"].sort, conffiles.sort
      strangers = Dir.glob("**/*", base: root(kind)).grep(/\.(o|a|bs|rbc|packlist)\z|core\/src/)
      assert_empty strangers
      refute_match(/#{Regexp.escape(E2E::ROOT)}/, File.binread(Dir["#{root(kind)}/usr/**/#{kind.extension}"].first), "paths of the build")
    end
  end

  # What Perl of the package serves without its extension, one file of it.
  def test_the_server_in_perl_alone
    kind = kinds.find { |one| one.name == "oribi-psgi" }
    output, code = command(kind, "--pure", "--version")
    assert_equal 0, code, output
    assert_match(/\(Oribi::Pure, perl v5/, output)
    file = Dir["#{root(kind)}/usr/lib/*/perl5/*/Oribi/Pure.pm"].first or flunk "no Oribi/Pure.pm"
    assert_equal File.binread("#{E2E::ROOT}/perl/lib/Oribi/Pure.pm"), File.binread(file)
  end

  def test_one_version_everywhere
    version = File.read(File.join(E2E::ROOT, "ruby/lib/oribi/version.rb"))[/VERSION = "(.*)"/, 1]
    changelog = File.read(File.join(E2E::ROOT, "packaging/debian/changelog"))
    assert_equal version, changelog[/\Aoribi \(([^)-]+)-\d+\)/, 1], "packaging/debian/changelog"
    spec = Dir["#{root(kinds.first)}/usr/share/rubygems-integration/*/specifications/*.gemspec"].first
    loaded = Gem::Specification.load(spec)
    assert_equal [version, []], [loaded.version.to_s, loaded.extensions]
    kinds.each { |kind| assert_match(/\A#{kind.name} #{Regexp.escape(version)}/, command(kind, "--version").first) }
  end

  def test_help_points_into_the_package
    kinds.each do |kind|
      output, code = command(kind, "--help")
      assert_equal 0, code, output
      assert_includes output, "#{File.realpath(root(kind))}/usr/share/doc/#{kind.name}/doc"
    end
  end

  def test_lintian_finds_no_error
    skip "no lintian here" unless system("lintian", "--version", out: File::NULL, err: File::NULL)
    output, code = run!("lintian", *("--allow-root" if Process.uid.zero?), "--fail-on", "error", *self.class.packages.values)
    assert_equal 0, code, output
  end

  def unit(kind) = File.read(Dir["#{root(kind)}/{usr/,}lib/systemd/system/#{kind.name}@.service"].first)

  def test_systemd_knows_every_line_of_the_units
    skip "no systemd-analyze here" unless system("systemd-analyze", "--version", out: File::NULL, err: File::NULL)
    kinds.each do |kind|
      target = "#{@dir}/#{kind.name}@board.service"
      File.write(target, unit(kind).gsub("/usr/bin/#{kind.name}", "/bin/true"))
      assert_equal "", E2E::Unit.findings(target)
    end
  end

  # The words of ExecStart, and of the script that finds servers, with folders of this test in place of the system's.
  def adapted(kind, text) = text.gsub("/run/#{kind.name}", "#{@dir}/run").gsub("/usr/bin/#{kind.name}", "#{root(kind)}/usr/bin/#{kind.name}")

  def servers(kind, word)
    script = "#{@dir}/servers"
    File.write(script, adapted(kind, File.read("#{root(kind)}/usr/lib/#{kind.name}/servers")))
    run!("sh", script, word, env: environment(kind))
  end

  def start(kind)
    FileUtils.mkdir_p("#{@dir}/run/board")
    FileUtils.cp(File.join(root(kind), kind.example), @dir)
    config = File.read(File.join(root(kind), kind.config("example")))
    port = E2E.free_port
    { "/usr/share/#{kind.name}/example" => @dir, kind.port => port.to_s }.each { |from, to| assert config.gsub!(from, to), "#{from} in #{config}" }
    File.write("#{@dir}/board", config)
    words = adapted(kind, unit(kind)[/^ExecStart=(.*)$/, 1]).sub(%r{/etc/#{kind.name}/%i\.\w+}, "#{@dir}/board").gsub("%i", "board").split
    one = E2E::Server.new(argv: words, env: environment(kind), group: true)
    one.instance_variable_set(:@address, ["127.0.0.1", port])
    @servers << one
    one.start
  end

  def test_the_service_s_command_serves_the_example_and_the_package_upgrades_it
    kinds.each do |kind|
      one = start(kind)
      assert_match(/\AOribi \S+ serves #{@dir}/, one.get("/").body)
      askers = E2E::Askers.new(one.address)
      wait_until("answers") { askers.answered > 10 }
      assert_equal ["#{kind.name}: board runs the new version\n", 0], servers(kind, "upgrade")
      assert_equal 0, one.wait.exitstatus, one.stderr # the old one has left
      upgraded = E2E.clock
      wait_until("answers of the new one") { askers.answered > 10 && E2E.clock > upgraded + 0.1 }
      assert_empty askers.stop
      assert_operator askers.answered_since(upgraded), :>, 0

      File.write(File.join(@dir, File.basename(kind.example)), "this is } no program\n")
      output, code = servers(kind, "upgrade")
      assert_equal 0, code, "the package is configured all the same"
      assert_match(/^#{kind.name}: board: upgrade failed, and the server goes on as before: .*#{File.basename(kind.example)}/, output)
      assert_match(/^#{kind.name}: board serves with the old version until this is mended; then: #{kind.name} ctl --control \S+ upgrade$/, output)
      assert_match(/\AOribi \S+ serves/, one.get("/").body)
      assert_equal ["", 0], servers(kind, "reopen")
      assert_equal ["#{kind.name}: board has stopped\n", 0], servers(kind, "stop")
      wait_until("all processes to end") { one.group.empty? }
      assert_equal ["", 0], servers(kind, "upgrade"), "no server is left to ask"
    ensure
      askers&.stop
    end
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/acme_authority"
require_relative "support/home"
require_relative "support/restarts"
require "rubygems/installer"

# Reload and upgrade of a command that was started in the ways in which package managers start it.
E2E.suite("launchers", transports: E2E::EITHER) do
  include E2E::Home
  include E2E::Restarts

  def address = unix? ? "unix://%{path}" : "127.0.0.1:%{port}"
  def options = ["--bind", address, "--workers", "1", "--no-dev"]

  # A certificate comes by itself, and a successor finds it.
  def assert_certificates(words)
    skip AcmeAuthority.refused if AcmeAuthority.refused
    http = E2E.free_port
    authority = AcmeAuthority.new(@home, http_port: http).start
    argv = [*words, "--bind", "tls://127.0.0.1:#{E2E.free_port}", "--bind", "tcp://127.0.0.1:#{http}?frontend=on", "--no-dev",
            "--control", "#{@home}/control", "--acme", "a.test", "--acme-terms", "--acme-dir", "#{@home}/acme", "--acme-command", authority.client,
            "--acme-directory", authority.directory, *(%w[--acme-user root] if Process.uid.zero?), File.expand_path(E2E.differing(:app), E2E::ROOT)]
    one = E2E::Server.new(argv: argv, env: library).launch
    wait_until("the certificate: #{one.stderr}") { one.stderr.include?("certificate of a.test: issued for a.test") }
    one.signal(:USR2)
    wait_until("the successor: #{one.stderr}") { one.ended? }
    ctl = [E2E::Server.binary, "ctl", "--control", "#{@home}/control"]
    wait_until("its look: #{one.stderr}") { IO.popen([*ctl, "certificates", { err: %i[child out] }], &:read).match?(/^a\.test +good /) }
    assert_equal 1, authority.orders
  ensure
    IO.popen([*ctl, "stop", { err: %i[child out] }], &:read) if ctl
    one&.cleanup
    authority&.stop
  end

  if E2E::RUBY
    # The gem as if it had been installed into a folder of its own, with a bundle that has it.
    def setup
      super
      FileUtils.mkdir_p(["#{@home}/gems/specifications", "#{@home}/gems/gems", "#{@home}/bin"])
      spec = Gem::Specification.load("#{E2E::ROOT}/ruby/oribi.gemspec").dup
      spec.extensions = []
      File.write("#{@home}/gems/specifications/#{spec.full_name}.gemspec", spec.to_ruby)
      FileUtils.ln_s("#{E2E::ROOT}/ruby", "#{@home}/gems/gems/#{spec.full_name}")
      @stub = Gem::Installer.for_spec(spec, install_dir: "#{@home}/gems").app_script_text("oribi")
      file("Gemfile", "source \"https://rubygems.org\"\ngem \"oribi\"\ngem \"rack\"\ngem \"rackup\"\n")
    end

    def library
      { "GEM_HOME" => "#{@home}/gems", "GEM_PATH" => ["#{@home}/gems", *Gem.path].join(":"), "HOME" => @home, "RUBYLIB" => nil, "RUBYOPT" => nil,
        "BUNDLE_GEMFILE" => nil, "PATH" => "#{@home}/bin:#{ENV.fetch("PATH")}", "E2E_CHDIR" => @home }
    end

    def bundle(*words)
      out = IO.popen([library, "bundle", *words, { chdir: @home, err: %i[child out] }], &:read)
      assert_predicate $?, :success?, out
    end

    # The forms differ in the first line, by which Bundler tells whether it loads the command in its own process.
    def stub(first_line)
      text = @stub.sub(/\A#!.*/, "#!#{first_line}")
      path = file("bin/oribi", text)
      File.chmod(0o755, path)
      path
    end

    def rackup_options
      unix? ? ["-O", "Path=%{path}", "-O", "MaxWorkers=1"] : ["-o", "127.0.0.1", "-p", "%{port}", "-O", "Workers=1"]
    end

    { "ruby_s_own_path" => RbConfig.ruby, "another_path" => "/usr/bin/env -S ruby", "env" => "/usr/bin/env ruby" }.each do |name, first_line|
      define_method(:"test_restarts_of_a_gem_s_command_that_begins_with_#{name}") do
        assert_restarts([stub(first_line), *options, "%{app}"])
      end

      define_method(:"test_restarts_under_bundle_exec_of_a_command_that_begins_with_#{name}") do
        stub(first_line)
        assert_restarts(["bundle", "exec", "oribi", *options, "--access-log-format", "%%h  %%U %%s", "%{app}"])
      end
    end

    def test_restarts_of_a_single_process_under_bundle_exec
      stub("/usr/bin/env ruby")
      one = E2E::Server.new(transport: transport, argv: ["bundle", "exec", "oribi", "--bind", address, "--single", "--no-dev", "#{@home}/app.ru"], env: library)
      @servers << one
      file("app.ru", "run ->(_env) { [200, {}, ['first']] }\n")
      one.start
      wait_until("the first code") { one.get("/").body == "first" }
      file("app.ru", "run ->(_env) { [200, {}, ['second']] }\n")
      one.signal(:HUP)
      wait_until("the second code: #{one.stderr}") { one.get("/").body == "second" }
      assert_equal 0, one.stop.exitstatus, one.stderr
    end

    def test_certificates_under_bundle_exec
      stub("/usr/bin/env ruby")
      assert_certificates(%w[bundle exec oribi])
    end

    def test_restarts_of_bundler_s_binstub
      stub(RbConfig.ruby)
      bundle("binstubs", "oribi", "--path", "stubs")
      assert_restarts(["#{@home}/stubs/oribi", *options, "%{app}"])
      assert_restarts(["bundle", "exec", "stubs/oribi", *options, "%{app}"])
    end

    def test_restarts_of_rackup_under_bundle_exec
      assert_restarts(["bundle", "exec", "rackup", "-s", "Oribi", "-E", "none", *rackup_options, "-O", "access_log_format=%%h  %%s", "%{app}"])
    end

    def test_restarts_of_rackup_with_a_pid_file_under_bundle_exec
      assert_restarts(["bundle", "exec", "rackup", "-s", "Oribi", "-E", "none", "-P", "#{@home}/pid", *rackup_options, "%{app}"])
    end

    def test_rackup_s_address_wins_over_the_file_under_bundle_exec
      file("config/oribi.rb", "bind #{"unix://#{@home}/other".inspect}\n")
      assert_restarts(["bundle", "exec", "rackup", "-s", "Oribi", "-E", "none", *rackup_options, "%{app}"])
    end

    # A deployment's link is switched to the next release, which has a Gemfile of its own.
    def test_a_reload_reads_the_gemfile_behind_the_link
      stub("/usr/bin/env ruby")
      %w[first second].each do |name|
        file("#{name}/Gemfile", File.read("#{@home}/Gemfile"))
        file("#{name}/config.ru", "file = ENV['BUNDLE_GEMFILE']\nrun ->(_env) { [200, {}, [file]] }\n")
      end
      FileUtils.ln_s("first", "#{@home}/current")
      env = library.merge("E2E_CHDIR" => "#{@home}/current", "PWD" => "#{@home}/current")
      one = E2E::Server.new(transport: transport, argv: ["bundle", "exec", "oribi", *options], env: env)
      @servers << one
      one.start
      assert_equal "#{@home}/first/Gemfile", one.get("/").body
      FileUtils.ln_s("second", "#{@home}/next")
      File.rename("#{@home}/next", "#{@home}/current")
      one.signal(:HUP)
      wait_until("the second Gemfile: #{one.stderr}") { one.get("/").body == "#{@home}/second/Gemfile" }
      assert_equal 0, one.stop.exitstatus, one.stderr
    end

    # --- releases behind a link, each with a Gemfile of its own ---

    # Gemfiles that differ, so that Bundler's choice is seen; the lines of the second may name gems that only it has.
    def releases
      %w[first second].each do |name|
        file("#{name}/Gemfile", "#{File.read("#{@home}/Gemfile")}# #{name}\n")
        file("#{name}/config.ru", "file = ENV['BUNDLE_GEMFILE']\nrun ->(_env) { [200, {}, [file]] }\n")
      end
      FileUtils.ln_s("first", "#{@home}/current")
    end

    def switch
      FileUtils.ln_s("second", "#{@home}/next")
      File.rename("#{@home}/next", "#{@home}/current")
    end

    # Bundler executes the command of gems that `bundle install` has written where Ruby's name has its version.
    def serve_first(*argv, from: "current", pwd: from, env: {})
      releases
      all = library.merge("E2E_CHDIR" => "#{@home}/#{from}", "PWD" => "#{@home}/#{pwd}", **env)
      one = E2E::Server.new(transport: transport, argv: [*argv, *options, "--control", "#{@home}/control"], env: all, group: true)
      @servers << one
      one.start
      assert_equal "#{@home}/first/Gemfile", File.realpath(one.get("/").body)
      one
    end

    def ctl(word) = IO.popen([E2E::Server.binary, "ctl", "--control", "#{@home}/control", word, { err: %i[child out] }], &:read)

    # The second release, also when the first is gone; then the end in good order.
    def assert_second(one)
      switch
      ctl("reload")
      assert_predicate $?, :success?, one.stderr
      assert_equal "#{@home}/second/Gemfile", one.get("/").body
      FileUtils.rm_r("#{@home}/first")
      said = ctl("reload")
      assert_predicate $?, :success?, said + one.stderr
      ctl("upgrade")
      assert_predicate $?, :success?, one.stderr
      assert_equal 0, one.wait.exitstatus, one.stderr
      assert_equal "#{@home}/second/Gemfile", one.get("/").body
      ctl("stop")
      wait_until("the end of all") { one.group.empty? }
      refute_match(/getcwd|Errno/, one.stderr)
    end

    { "executed" => "/usr/bin/env #{RbConfig::CONFIG["ruby_install_name"]}", "loaded" => RbConfig.ruby,
      "executed_with_switches" => "/usr/bin/env -S ruby -w" }.each do |name, line|
      define_method(:"test_releases_of_a_command_#{name}_by_bundler") do
        stub(line)
        assert_second(serve_first("bundle", "exec", "oribi"))
      end
    end

    def test_releases_of_a_command_that_has_chdir_from_inside
      stub("/usr/bin/env -S ruby")
      assert_second(serve_first("bundle", "exec", "oribi", "--chdir", "#{@home}/current", from: "first"))
    end

    def test_releases_of_a_file_that_has_chdir
      stub("/usr/bin/env -S ruby")
      %w[first second].each { |name| file("#{name}/config/oribi.rb", "chdir #{"#{@home}/current".inspect}\n") }
      assert_second(serve_first("bundle", "exec", "oribi", from: "first"))
    end

    def test_releases_of_bundler_s_binstub
      stub("/usr/bin/env ruby")
      bundle("binstubs", "oribi", "--path", "bin/stubs")
      text = File.read("#{@home}/bin/stubs/oribi").sub('"../../Gemfile"', '"../Gemfile"')
      %w[first second].each { |name| File.chmod(0o755, file("#{name}/bin/oribi", text)) }
      assert_second(serve_first("bin/oribi"))
    end

    def test_releases_of_bundler_s_binstub_under_bundle_exec
      stub("/usr/bin/env ruby")
      bundle("binstubs", "oribi", "--path", "bin/stubs")
      text = File.read("#{@home}/bin/stubs/oribi").sub('"../../Gemfile"', '"../Gemfile"').sub(/\A#!.*/, "#!/usr/bin/env -S ruby")
      %w[first second].each { |name| File.chmod(0o755, file("#{name}/bin/oribi", text)) }
      assert_second(serve_first("bundle", "exec", "bin/oribi"))
    end

    def test_a_gem_that_is_new_in_a_release
      stub("/usr/bin/env -S ruby")
      one = serve_first("bundle", "exec", "oribi")
      file("second/Gemfile", "#{File.read("#{@home}/Gemfile")}gem \"minitest\"\n")
      file("second/config.ru", "require 'minitest'\nrun ->(_env) { [200, {}, [Minitest::VERSION]] }\n")
      switch
      said = ctl("reload")
      assert_predicate $?, :success?, said + one.stderr
      assert_match(/\A\d+\./, one.get("/").body)
    end

    # It stays; but its release is an older one.
    def test_a_gemfile_of_the_operator_s_in_an_older_release
      stub("/usr/bin/env -S ruby")
      path = "#{@home}/first/Gemfile"
      one = serve_first("bundle", "exec", "oribi", env: { "BUNDLE_GEMFILE" => path })
      refute_includes one.stderr, "BUNDLE_GEMFILE"
      switch
      ctl("reload")
      assert_predicate $?, :success?, one.stderr
      assert_equal path, one.get("/").body
      advice = "BUNDLE_GEMFILE is #{path}, though this folder has #{@home}/second/Gemfile: name it by way of the link, or do not set it"
      assert_equal 1, one.stderr.scan(" warn: #{advice}\n").size, one.stderr
      found = IO.popen([library.merge("BUNDLE_GEMFILE" => path), "bundle", "exec", "oribi", "check", { chdir: "#{@home}/current", err: %i[child out] }], &:read)
      assert_includes found.gsub(/\s+/, " "), advice
      FileUtils.rm_r("#{@home}/first")
      said = ctl("reload")
      assert_includes said, "a file that it needs is missing: #{path}"
    end

    # A title of the application's own, written before the server starts.
    def test_restarts_of_a_program_that_has_changed_its_title
      program = file("program.rb", <<~RUBY)
        $0 = "shop"
        require "oribi/handler"
        app = ARGV.fetch(0)
        text = Rack::Builder.parse_file(app)
        Oribi::Handler.run(Array(text).first, bind: ARGV.fetch(1), workers: 1, dev: "off")
      RUBY
      assert_restarts(["ruby", program, "%{app}", address], env: library.merge("RUBYLIB" => "#{E2E::ROOT}/ruby/lib"))
    end
  else
    def blib = %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }
    def library = { "PERL5LIB" => nil, "PATH" => "#{@home}/local/bin:#{ENV.fetch("PATH")}", "E2E_CHDIR" => @home }
    def plackup_options = unix? ? ["--listen", "%{path}"] : ["--host", "127.0.0.1", "--port", "%{port}"]

    # As Carton leaves it: modules in local/lib/perl5, commands in local/bin.
    def setup
      super
      FileUtils.mkdir_p("#{@home}/local/lib")
      FileUtils.ln_s(blib[0], "#{@home}/local/lib/perl5")
      FileUtils.mkdir_p("#{@home}/local/bin")
      FileUtils.ln_s(`which plackup`.chomp, "#{@home}/local/bin/plackup")
      FileUtils.ln_s(E2E::Server.binary, "#{@home}/local/bin/oribi-psgi")
    end

    def test_restarts_under_carton_s_variables
      env = library.merge("PERL5LIB" => "#{@home}/local/lib/perl5:#{blib[1]}")
      assert_restarts(["plackup", "-s", "Oribi", "-E", "none", "--workers", "1", *plackup_options, "%{app}"], env: env)
      assert_restarts(["oribi-psgi", *options, "%{app}"], env: env)
    end

    def test_certificates_of_a_library_of_perl_s_switches
      assert_certificates(["perl", "-Ilocal/lib/perl5", "-I#{blib[1]}", "local/bin/oribi-psgi"])
    end

    # The switches of perl are nowhere else, and plackup's title is written over them.
    def test_restarts_of_plackup_with_a_library_of_perl_s_switches
      assert_restarts(["perl", "-Ilocal/lib/perl5", "-I#{blib[1]}", "-w", "local/bin/plackup", "-s", "Oribi", "-E", "none", "--workers", "1",
                       *plackup_options, "%{app}"])
    end

    def test_restarts_of_oribi_psgi_with_a_library_of_perl_s_switches
      assert_restarts(["perl", "-Ilocal/lib/perl5", "-I#{blib[1]}", "local/bin/oribi-psgi", *options, "%{app}"])
    end
  end
end

# frozen_string_literal: true

require_relative "support"

# Debuggers put methods of their own before Ruby's trap and fork. Ruby only.
if E2E::RUBY
  E2E.suite("debugger", transports: %i[tcp]) do
    # The one that is a part of this Ruby, and what was installed since.
    def self.versions = Gem::Specification.select { |spec| spec.name == "debug" }.map { |spec| spec.version.to_s }.uniq

    def setup
      super
      @dir = Dir.mktmpdir("oribi-app")
    end

    def teardown
      super
      FileUtils.remove_entry(@dir)
    end

    def app(head = "")
      File.join(@dir, "config.ru").tap do |path|
        File.write(path, <<~RUBY)
          #{head}
          run lambda { |env|
            sleep if env["PATH_INFO"] == "/sleep"
            [200, { "content-type" => "text/plain" }, ["serving"]]
          }
        RUBY
      end
    end

    def options = ["--bind", "127.0.0.1:%{port}", "--workers", "2", "--call-timeout", "0.2"]

    def assert_serves_and_stops(*words, env: {}, signal: :TERM)
      one = E2E::Server.new(argv: words, group: true, env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "TMPDIR" => @dir, **env })
      @servers << one
      one.start
      assert_equal "serving", one.get("/").body
      assert_equal 504, one.get("/sleep").status, -> { "the deadline's signal is ours still: #{one.stderr}" }
      one.signal(signal)
      one.wait
      wait_until("the end of all: #{one.group}") { one.group.empty? }
      assert_equal 0, one.status.exitstatus || one.status.termsig % 2, one.stderr
    end

    # Whoever knows no numbers: `sig.to_sym`.
    def test_a_trap_that_knows_no_numbers
      assert_serves_and_stops(E2E::Server.binary, *options, app(<<~RUBY))
        narrow = Module.new { def trap(signal, *rest, &block) = signal.to_sym && super }
        Signal.singleton_class.prepend(narrow)
        Kernel.prepend(narrow)
        Object.prepend(narrow)
        Kernel.singleton_class.prepend(narrow)
      RUBY
    end

    def test_a_trap_that_was_replaced
      assert_serves_and_stops("ruby", "-e", <<~'RUBY', E2E::Server.binary, *options, app)
        class << Signal
          alias_method :old_trap, :trap
          def trap(signal, *rest, &block) = signal.to_sym && old_trap(signal, *rest, &block)
        end
        load ARGV.shift
      RUBY
    end

    versions.each do |version|
      name = version.tr(".", "_")

      define_method("test_debug_#{name}_in_the_rackup_file") do
        assert_serves_and_stops(E2E::Server.binary, *options, app("gem 'debug', '#{version}'\nrequire 'debug'"), env: { "RUBY_DEBUG_NO_RC" => "1" })
      end

      define_method("test_debug_#{name}_before_everything") do
        %w[debug/prelude debug debug/open_nonstop].each do |library|
          start = "gem 'debug', '#{version}'; require '#{library}'; load ARGV.shift"
          assert_serves_and_stops("ruby", "-e", start, E2E::Server.binary, *options, app, env: { "RUBY_DEBUG_NONSTOP" => "1" })
        end
      end

      define_method("test_debug_#{name}_and_int") do
        assert_serves_and_stops(E2E::Server.binary, *options, app("gem 'debug', '#{version}'\nrequire 'debug/open_nonstop'"), signal: :INT)
      end
    end

    def test_rdebug
      skip "this Ruby has no debug" if self.class.versions.empty?
      assert_serves_and_stops("ruby", "-rdebug", E2E::Server.binary, *options, app, env: { "RUBY_DEBUG_NONSTOP" => "1" })
    end
  end
end

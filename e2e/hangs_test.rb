# frozen_string_literal: true

require_relative "support"

# Workers that hang outside any call: a signal's handler that the application has set, and that runs between two calls.
E2E.suite("hangs", transports: %i[tcp]) do
  def app
    ruby = <<~RUBY
      run ->(env) {
        trap("ALRM") { File.write(File.join(ENV.fetch("E2E_DIR"), "hangs"), "x"); sleep } if env["PATH_INFO"] == "/hang"
        [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
      }
    RUBY
    perl = <<~'PERL'
      sub {
          my ($env) = @_;
          $SIG{ALRM} = sub { open my $f, '>', "$ENV{E2E_DIR}/hangs"; close $f; sleep 1 while 1 } if $env->{PATH_INFO} eq '/hang';
          return [200, ['Content-Type' => 'text/plain'], [$$]];
      };
    PERL
    @folder = Dir.mktmpdir("oribi-e2e")
    File.join(@folder, E2E::RUBY ? "hang.ru" : "hang.psgi").tap { |path| File.write(path, E2E::RUBY ? ruby : perl) }
  end

  def teardown
    super
    FileUtils.remove_entry(@folder) if @folder
  end

  define_method(:test_a_worker_that_hangs_outside_any_call_is_replaced) do
    one = start("--call-timeout", "1s", app: app)
    client = connect(one)
    pid = Integer(client.get("/hang").body)
    Process.kill(:ALRM, pid)
    wait_until("its end: #{one.stderr}") { File.exist?("#{one.dir}/hangs") && one.stderr.include?("hangs outside any call") }
    wait_until("another one") { one.stderr.include?("replacing it") || !E2E::Processes.alive?(pid) }
    refute_equal pid, Integer(connect(one).get("/").body)
    assert_match(/error\S*: worker 0 \(pid #{pid}\) killed: it hangs outside any call, for \d+ ms now \(call_timeout 1000 ms\)/, one.stderr)
  end

  # One that sleeps has nothing to do.
  define_method(:test_a_worker_without_requests_is_left_alone) do
    one = start("--call-timeout", "50ms", app: app)
    client = connect(one)
    pid = Integer(client.get("/").body)
    looked = E2E.clock
    wait_until("looks of the supervisor") { E2E.clock - looked > 6.5 }
    assert_equal pid, Integer(client.get("/").body)
  end
end

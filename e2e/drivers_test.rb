# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Drivers for tests of applications, Oribi::Test of both languages: a test as an application would have it.
E2E.suite("drivers", transports: %i[tcp]) do
  include FrontendServers

  const_set(:RUBY_ECHO, <<~RUBY)
    class Echo
      def self.call(env) = env["oribi.websocket"].accept(self)
      def self.on_message(ws, data) = ws.send(data)
    end
    run Echo
  RUBY
  const_set(:PERL_ECHO, <<~PERL)
    sub Echo::on_message { $_[1]->send($_[2]) }
    sub { $_[0]{'oribi.websocket'}->accept('Echo') };
  PERL
  const_set(:RUBY_USE, 'require "oribi/test"; Oribi::Test.serve("app.ru") { |server| print server.websocket.send("hi").receive }')
  const_set(:PERL_USE, "use Oribi::Test; my $server = Oribi::Test->serve('app.psgi'); my $ws = $server->websocket; print scalar $ws->send('hi')->receive")

  def run_driver(*words, chdir: E2E::ROOT)
    command = if E2E::RUBY
                [RbConfig.ruby, "-I#{E2E::ROOT}/ruby/lib"]
              else
                ["perl", "-I#{E2E::ROOT}/perl/blib/lib", "-I#{E2E::ROOT}/perl/blib/arch"]
              end
    output, status = Open3.capture2e({ "E2E_DIR" => @dir }, *command, *words, chdir: chdir)
    assert_predicate status, :success?, output
    output
  end

  def write_folder(settings)
    file = E2E.differing(:app_extension)
    FileUtils.mkdir_p("#{@dir}/config")
    File.write("#{@dir}/app#{file}", E2E::RUBY ? self.class::RUBY_ECHO : self.class::PERL_ECHO)
    text = settings.map { |name, value| E2E::RUBY ? "#{name} #{value.inspect}\n" : "#{name} '#{value}';\n" }.join
    File.write("#{@dir}/config/oribi#{E2E::RUBY ? '.rb' : '.pl'}", E2E::RUBY ? text : "#{text}{};\n")
  end

  def test_a_test_of_an_application
    output = run_driver(E2E::RUBY ? "e2e/apps/driver_test.rb" : "e2e/apps/driver.t")
    assert_match(E2E::RUBY ? /^9 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/ : /^1\.\.\d+$/, output)
  end

  # Its log, pid file and address of metrics are those of the server that runs, and it closes sockets over a minute.
  def test_an_application_whose_server_runs_beside_the_test
    taken = TCPServer.new("127.0.0.1", 0)
    File.write("#{@dir}/pid", Process.pid)
    write_folder("error_log" => "error.log", "quiet" => "on", "pid_file" => "pid", "status" => "127.0.0.1:#{taken.addr[1]}", "frontend_drain" => "1m")
    began = E2E.clock
    assert_equal "hi", run_driver("-e", E2E::RUBY ? self.class::RUBY_USE : self.class::PERL_USE, chdir: @dir)
    assert_operator E2E.clock - began, :<, 30
    assert_path_exists "#{@dir}/pid"
    refute_path_exists "#{@dir}/error.log"
  ensure
    taken&.close
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/home"

# The soft limit of descriptors, of 64 here, is raised for connections and not for programs that a call starts.
E2E.suite("child_limits", transports: [:tcp]) do
  include E2E::Home

  LIMIT = 64

  def app
    ruby = <<~'RUBY'
      limit = -> { File.read("/proc/self/limits")[/Max open files\s+(\d+)/, 1] }
      run lambda { |env|
        text =
          case env["PATH_INFO"]
          when "/own" then limit.call
          when "/program" then `grep "Max open files" /proc/self/limits`[/\d+/]
          when "/fork"
            reader, writer = IO.pipe
            Process.wait(fork { writer.write(limit.call) && exit!(true) })
            writer.close
            reader.read
          end
        [200, {}, [text.to_s]]
      }
    RUBY
    perl = <<~'PERL'
      sub limit { open my $f, '<', '/proc/self/limits' or die; my ($n) = join('', <$f>) =~ /Max open files\s+(\d+)/; $n }
      sub {
          my $path = $_[0]{PATH_INFO};
          my $text = $path eq '/own' ? limit() : '';
          ($text) = `grep "Max open files" /proc/self/limits` =~ /(\d+)/ if $path eq '/program';
          if ($path eq '/fork') {
              pipe my $reader, my $writer;
              my $pid = fork // die;
              if (!$pid) { syswrite $writer, limit(); require POSIX; POSIX::_exit(0) }
              waitpid $pid, 0;
              close $writer;
              $text = <$reader>;
          }
          [200, [], ["$text"]];
      }
    PERL
    file("app#{E2E.differing(:app_extension)}", E2E::RUBY ? ruby : perl)
  end

  def serve_with_a_low_limit
    skip "no /proc" unless File.exist?("/proc/self/limits")
    path = app
    shell = ["sh", "-c", "ulimit -Sn #{LIMIT} && exec \"$@\"", "sh"]
    one = E2E::Server.new(transport: transport, argv: [*shell, E2E::Server.binary, "--bind", "127.0.0.1:%{port}", "--workers", "1", "--no-dev", path])
    @servers << one
    one.start
  end

  def test_a_program_of_a_call_has_the_limit_of_the_start
    one = serve_with_a_low_limit
    assert_equal [LIMIT.to_s] * 3, %w[/own /program /fork].map { |path| one.get(path).body }
    assert_equal 0, one.stop.exitstatus, one.stderr
  end

  def test_connections_have_more
    one = serve_with_a_low_limit
    clients = Array.new(3 * LIMIT) { one.connect.tap { |client| client.get("/") } }
    assert_operator one.get("/own").body.to_i, :>, 3 * LIMIT
    assert_equal LIMIT.to_s, one.get("/fork").body
    clients.each(&:close)
    assert_equal 0, one.stop.exitstatus, one.stderr
  end
end

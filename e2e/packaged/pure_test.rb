# frozen_string_literal: true

require_relative "../support"
require_relative "../../tools/userland"

# Oribi::Pure in a Debian that debootstrap has just made: no compiler, no module but Perl's own, one file, one command.
class PureTest < Minitest::Test
  REASON = Userland.missing || (E2E::RUBY ? "Oribi::Pure is Perl's" : nil)

  def setup
    skip REASON if REASON
    @userland = Userland.new
    @userland.take("perl/lib/Oribi/Pure.pm", "/srv/Pure.pm")
  end

  def teardown = @userland&.remove

  # The command, and what it answers to a shell's lines, which find it at $at.
  def serve(command, lines)
    port = E2E.free_port
    @userland.run(<<~SH)
      cd /srv && (#{command} --port #{port} >/tmp/log 2>&1 & echo $! >/tmp/pid)
      until grep -q 'listening on' /tmp/log; do kill -0 $(cat /tmp/pid) || { cat /tmp/log; exit 1; }; sleep 0.05; done
      at=http://127.0.0.1:#{port}
      #{lines}
      kill $(cat /tmp/pid)
      while kill -0 $(cat /tmp/pid) 2>/dev/null; do sleep 0.05; done
      grep -v ' info: ' /tmp/log | grep -v 'HTTP/1.1"' || true
    SH
  end

  def test_the_base_of_perl_alone
    @userland.run("! command -v cc && ! command -v gcc && ! perl -MJSON::PP -e 1 2>/dev/null")
    @userland.write("/srv/app.psgi", "sub { local $/; my $in = $_[0]{'psgi.input'}; [200, [], [length <$in>]] }\n")
    assert_equal "3 0", serve("perl Pure.pm app.psgi", "curl -sS --fail -d a=b $at/; printf ' '; curl -sS --fail $at/").chomp
  end

  def test_the_board_by_one_command
    @userland.run("apt-get install -y -qq --no-install-recommends perl && ! command -v cc && ! command -v make")
    @userland.take("examples/board-core", "/srv/board-core")
    said = serve("perl Pure.pm board-core/app.psgi", <<~SH)
      curl -sS --fail $at/ | grep -o '[0-9]* messages'
      curl -sS --fail -o /dev/null -w '%{http_code}\\n' -d 'nick=Ann&body=written+here' $at/messages
      curl -sS --fail $at/ | grep -o 'written here'
      curl -sS --fail $at/archive | grep -o 'That was all'
    SH
    assert_equal ["0 messages", "303", "written here", "That was all"], said.lines.map(&:chomp)
  end
end

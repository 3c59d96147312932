# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"

# WebSockets in development: a saved file loads the application anew and closes none; what a handler dies of is the
# reason of the close.
E2E.suite("websocket_development", transports: %i[tcp]) do
  include FrontendServers
  include E2E::Home

  RB = E2E::RUBY
  HANDLER = RB ? "lib/room.rb" : "lib/Room.pm"
  MAIN = RB ? "config.ru" : "app.psgi"
  TEXT = RB ? <<~'RUBY' : <<~'PERL'
    class Room
      def self.on_open(ws) = ws.state["dies"] ? raise("at once") : nil

      def self.on_message(ws, data)
        case data
        when "die" then raise KeyError, "no such room\nand more" # line 6
        when "long" then raise "\u00fc" * 100
        when "bytes" then raise "\xff"
        when "close" then ws.state["dies"] = true
        else ws.send("first #{data} #{ws.state["n"] = ws.state.fetch("n", 0) + 1}")
        end
      end

      def self.on_close(ws, code, reason)
        ws.publish("closed", "#{code} #{reason}")
        raise "in the end" if ws.state["dies"]
      end
    end
  RUBY
    package Room;
    use strict; use warnings;
    sub on_open { die "at once\n" if $_[1]->state->{dies} }
    sub on_message {
        my ($class, $ws, $data) = @_;
        die "no such room\nand more\n" if $data eq 'die'; # line 6
        die "\x{fc}" x 100 if $data eq 'long';
        die "\xff\n" if $data eq 'bytes';
        return $ws->state->{dies} = 1 if $data eq 'close';
        $ws->send("first $data " . ++$ws->state->{n});
    }
    sub on_close {
        my ($class, $ws, $code, $reason) = @_;
        $ws->publish(closed => "$code $reason");
        die "in the end\n" if $ws->state->{dies};
    }
    1;
  PERL

  def setup
    super
    save(HANDLER, TEXT)
    file(MAIN, RB ? <<~RUBY : <<~PERL)
      require_relative "lib/room"
      run lambda { |env|
        ws = env["oribi.websocket"] or return [200, { "content-type" => "text/plain" }, ["here"]]
        query = env["QUERY_STRING"]
        ws.accept(Room, channels: query == "listens" ? ["closed"] : [], state: query == "dies" ? { "dies" => true } : {})
      }
    RUBY
      use lib 'lib';
      use Room;
      sub {
          my ($env) = @_;
          my $ws = $env->{'oribi.websocket'} or return [200, ['Content-Type' => 'text/plain'], ['here']];
          my $query = $env->{QUERY_STRING};
          return $ws->accept('Room', channels => $query eq 'listens' ? ['closed'] : [], state => $query eq 'dies' ? {dies => 1} : {});
      };
    PERL
  end

  # As editors do: a new file takes the name.
  def save(name, text)
    file("#{name}~", text)
    File.rename("#{@home}/#{name}~", "#{@home}/#{name}")
  end

  def begin_server(environment = "development", *options)
    serve("--env", environment, "--chdir", @home, *options, address: FrontendServers::PLAIN_ADDRESS, app: "#{@home}/#{MAIN}")
  end

  def socket(query = "") = hold(E2E::SocketClient.new(@one.port, "/?#{query}"))

  def test_a_saved_file_closes_no_socket
    begin_server("development", "--dev")
    one, other = socket, socket
    assert_equal "first a 1", one.ask("a")
    save(HANDLER, TEXT.sub("first", "second"))
    answer = nil
    count = 1
    wait_until("the new code, not #{answer}") { (answer = one.ask("b")) && (count += 1) && answer.start_with?("second") }
    assert_equal "second b #{count}", answer
    assert_equal "second c 1", other.ask("c")
    assert_match(/info: #{Regexp.escape(HANDLER)} changed: loading the application anew$/, @one.stderr)
  end

  # With the handler there is nobody to call; who comes back finds the mended one.
  def test_a_file_that_does_not_load
    begin_server("development", "--dev")
    one, idle = socket, socket
    save(HANDLER, RB ? "class Room\n" : "package Room; sub {\n")
    wait_until("the page") { @one.get("/").status == 500 }
    one.say("a")
    assert_equal [1012, ""], one.read_close
    assert_equal 500, socket.status
    save(HANDLER, TEXT)
    wait_until("the application") { @one.get("/").status == 200 }
    assert_equal "first a 1", idle.ask("a")
    assert_match(/the application has no handler Room any more; the WebSocket is closed with 1012/, @one.stderr)
  end

  def test_what_a_handler_dies_of
    begin_server
    joint, klass, name = RB ? [".", "KeyError: ", "room.rb"] : ["->", "", "Room.pm"]
    listener = socket("listens")
    one = socket
    one.say("die")
    reason = "Room#{joint}on_message: #{klass}no such room (#{name}:6)"
    assert_equal [1011, reason], one.read_close
    assert_equal "1011 #{reason}", listener.message
    assert_match(/error: WS-MESSAGE .*: the application died: .*no such room/, @one.stderr)
    one = socket("dies")
    assert_match(/\ARoom#{joint}on_open: (RuntimeError: )?at once \(#{name}:\d+\)\z/, one.read_close.last)
    { "long" => 123, "bytes" => 123 }.each do |word, most|
      one = socket
      one.say(word)
      reason = one.read_close.last.force_encoding(Encoding::UTF_8)
      assert_predicate reason, :valid_encoding?
      assert_match(/\ARoom#{joint}on_message: .+ \(#{name}:\d+\)\z/, reason)
      assert_operator reason.bytesize, :<=, most
      assert_operator reason.bytesize, :>=, 122 if word == "long"
    end
    one = socket
    one.say("close")
    one.close_with(1000)
    assert_equal [1000, ""], one.read_close, "it was closed before"
    wait_until("the line") { @one.stderr.match?(/error: WS-CLOSE .*in the end/) }
  end

  def test_production_tells_nothing
    begin_server("production")
    one = socket
    one.say("die")
    assert_equal [1011, ""], one.read_close
    assert_match(/no such room/, @one.stderr)
  end
end

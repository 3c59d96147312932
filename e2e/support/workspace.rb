# frozen_string_literal: true

module E2E
  # A folder with an application and a config file that a test changes while the server runs, in the language of the
  # command under test.
  class Workspace
    attr_reader :dir

    def initialize
      @dir = Dir.mktmpdir("oribi-app")
      write_app("first")
    end

    def app = File.join(@dir, "app#{E2E.differing(:app_extension)}")
    def control = File.join(@dir, "control")
    def config = File.join(@dir, RUBY ? "config.rb" : "config.pl")
    def notes_path = File.join(@dir, "notes")
    def gate_path = File.join(@dir, "gate")
    def open_gate = FileUtils.touch(gate_path)
    def notes = File.exist?(notes_path) ? File.readlines(notes_path, chomp: true) : []

    # An application whose answer to everything is `text`, but for some paths; a call of /gate ends when the gate is
    # open.
    def write_app(text, ruby: "", perl: "")
      File.write(app, RUBY ? ruby_app(text, ruby) : perl_app(text, perl))
    end

    # An application that cannot be loaded.
    def break_app(reason) = File.write(app, RUBY ? "raise #{reason.inspect}\n" : "die #{reason.inspect} . qq{\\n};\n")

    # options: name => value; hooks: names of hooks, each of which leaves a note.
    def write_config(options = {}, hooks: [])
      File.write(config, RUBY ? ruby_config(options, hooks) : perl_config(options, hooks))
    end

    def remove = FileUtils.remove_entry(@dir)

    private

    def ruby_app(text, more)
      <<~RUBY
        #{more}
        calls = 0
        run lambda { |env|
          calls += 1
          body =
            case env["PATH_INFO"]
            when "/pid" then Process.pid.to_s
            when "/calls" then calls.to_s
            when "/env" then env.keys.grep(/early_hints/).join
            when "/gate" then IO.select(nil, nil, nil, 0.005) until File.exist?(#{gate_path.inspect})
            when "/ready" then Oribi.stopping? ? "no" : "yes"
            when "/raise" then raise "told to fail"
            else #{text.inspect}
            end
          [200, { "content-type" => "text/plain" }, [body || "passed"]]
        }
      RUBY
    end

    def perl_app(text, more)
      <<~PERL
        #{more}
        my $calls = 0;
        sub {
            my ($env) = @_;
            my $path = $env->{PATH_INFO};
            $calls++;
            die "told to fail\\n" if $path eq '/raise';
            while ($path eq '/gate' && !-e '#{gate_path}') { select undef, undef, undef, 0.005 }
            my $ready = Oribi::stopping() ? 'no' : 'yes';
            my %body = ('/ready' => $ready, '/pid' => $$, '/calls' => $calls, '/env' => join('', grep {/informational/} keys %$env), '/gate' => 'passed');
            return [200, ['Content-Type' => 'text/plain'], [exists $body{$path} ? $body{$path} : '#{text}']];
        };
      PERL
    end

    def ruby_config(options, hooks)
      lines = options.map { |name, value| "#{name} #{value.inspect}" }
      hooks.each do |hook|
        lines << "#{hook} { |*a| File.write(#{notes_path.inspect}, [\"#{hook}\", Process.pid, *a].join(\" \") + \"\\n\", mode: \"a\") }"
      end
      "#{lines.join("\n")}\n"
    end

    def perl_config(options, hooks)
      lines = options.map { |name, value| "#{name} => '#{value}'" }
      hooks.each do |hook|
        # The server and the application's code are among what before_worker_exit gets.
        lines << "#{hook} => sub { open my $f, '>>', '#{notes_path}' or die; print $f join(' ', '#{hook}', $$, grep { !ref } @_), qq{\\n}; close $f }"
      end
      "+{ #{lines.join(",\n")} };\n"
    end
  end

  # For suites in which each test has a workspace, @space, of its own.
  module InWorkspace
    def setup
      super
      @space = Workspace.new
    end

    def teardown
      super
      @space.remove
    end
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/workspace"

# Development: a file that changes loads the application anew, and one that does not load is a page.
E2E.suite("changes", transports: %i[tcp]) do
  include E2E::Home

  RB = E2E::RUBY
  LIBRARY = RB ? "lib/words.rb" : "lib/Words.pm"
  APP = E2E::RUBY ? "config.ru" : "app.psgi"

  def setup
    super
    words("first")
    file(APP, RB ? <<~RUBY : <<~PERL)
      require_relative "lib/words"
      run lambda { |env|
        require_relative "lib/later" if env["PATH_INFO"] == "/later"
        sleep 0.01 until File.exist?("gate") if env["PATH_INFO"] == "/gate"
        sleep 1.5 if env["PATH_INFO"] == "/long"
        [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] == "/later" ? Later::TEXT : Words::TEXT]]
      }
    RUBY
      use lib 'lib';
      use Words;
      sub {
          my $path = $_[0]{PATH_INFO};
          if ($path eq '/later') { require Later; return [200, [], [$Later::TEXT]] }
          if ($path eq '/gate') { select undef, undef, undef, 0.01 until -e 'gate' }
          my $until = time + 2; # whatever signals come
          if ($path eq '/long') { select undef, undef, undef, 0.05 until time >= $until }
          return [200, ['Content-Type' => 'text/plain'], [$Words::TEXT]];
      };
    PERL
  end

  # As editors do: a new file takes the name.
  def save(name, text)
    file("#{name}~", text)
    File.rename("#{@home}/#{name}~", "#{@home}/#{name}")
  end

  def module_text(name, text) = RB ? "module #{name}; TEXT = #{text.inspect}; end\n" : "package #{name}; our $TEXT = '#{text}'; 1;\n"
  def words(text) = save(LIBRARY, module_text("Words", text))

  def serve(*options) = start("--dev", "--chdir", @home, *options, app: "#{@home}/#{APP}").tap { |one| one.get("/") } # which has loaded then

  def wait_for(one, text, target = "/")
    wait_until("#{text} to be served; #{one.stderr}") { one.get(target).body.include?(text) }
  end

  def test_a_file_that_changes_loads_the_application_anew
    one = serve
    kept = connect(one)
    assert_equal "first", kept.get("/").body
    words("second")
    wait_for(one, "second")
    assert_match(/info: #{Regexp.escape(LIBRARY)} changed: loading the application anew$/, one.stderr)
    save(APP, File.read("#{@home}/#{APP}").sub("Words::TEXT", RB ? '"third"' : 'empty . "third"').sub("empty", '""').sub('$""', '""'))
    wait_for(one, "third")
    assert_match(/info: #{Regexp.escape(APP)} changed/, one.stderr)
  end

  def test_what_a_call_has_loaded_counts_too
    later = LIBRARY.sub(/[Ww]ords/) { |name| name == "Words" ? "Later" : "later" }
    save(later, module_text("Later", "once"))
    one = serve("-v")
    assert_equal "once", one.get("/later").body
    wait_until("the list of files, again") { one.stderr.scan("debug: watching").size >= 2 }
    save(later, module_text("Later", "again"))
    wait_for(one, "again", "/later")
  end

  def test_an_application_that_does_not_load_is_a_page_until_it_is_mended
    broken = RB ? "module Words; TEXT = 'no end\n" : "package Words; our $TEXT = (;\n1;\n"
    save(LIBRARY, broken)
    one = serve
    answer = one.get("/")
    assert_equal 500, answer.status
    assert_match(/#{LIBRARY}/, answer.body)
    assert_match(/the application has loaded in \S+ s \(with an error, which every request gets\)/, one.stderr)
    words("mended")
    wait_for(one, "mended")
    assert_equal 1, one.stderr.scan("with an error").size
    save(LIBRARY, broken)
    wait_until("the page") { one.get("/").status == 500 }
    words("mended again")
    wait_for(one, "mended again")
    refute one.ended?
  end

  # One at a debugger's prompt may last: the server's own end alone has shutdown_timeout, and kills a second after it.
  def test_a_call_that_runs_longer_than_shutdown_timeout_ends_where_it_is
    one = serve("--shutdown-timeout", "100ms", *(RB ? %w[--threads 2] : %w[--workers 2]))
    client = connect(one)
    client.request("GET", "/long")
    words("second")
    wait_for(one, "second")
    assert_equal "first", client.read_response.body
  end

  # A broken file that is saved while a request runs: that request ends where it is.
  def test_a_request_that_runs_ends_where_it_is
    one = serve
    client = connect(one)
    client.request("GET", "/gate")
    words("second")
    wait_for(one, "second") if RB
    save(LIBRARY, "(\n")
    wait_until("the page") { one.get("/").status == 500 } if RB
    file("gate", "")
    assert_equal "first", client.read_response.body
    words("mended")
    wait_for(one, "mended")
  end

  def test_patterns_that_are_watched_beside
    file("views/deep/one.tt", "a")
    file("words.yml", "a")
    one = serve("--watch", "views", "--watch", "*.yml")
    { "views/deep/one.tt" => "b", "views/deep/two.tt" => "a", "words.yml" => "b", "more.yml" => "a" }.each_with_index do |(name, text), i|
      file(name, text)
      lines = ["#{name} changed", "reload done: 1 worker of generation #{i + 2}"]
      wait_until("generation #{i + 2}; #{one.stderr}") { lines.all? { |line| one.stderr.include?(line) } }
    end
    file("words.txt", "a")
    words("second")
    wait_for(one, "second")
    refute_match(/words.txt/, one.stderr)
  end

  def test_no_application_is_no_start
    two = run_to_end("--dev", app: "#{@home}/none#{File.extname(APP)}")
    assert_equal 1, two.status.exitstatus
    assert_match(/none\S+: no such file/, two.stderr)
  end

  def test_production_does_neither
    words("first")
    one = start("-E", "production", "--chdir", @home, app: "#{@home}/#{APP}")
    assert_equal "first", one.get("/").body
    assert_empty E2E::Processes.descriptors(one.pid).values.grep(/inotify/)
    save(LIBRARY, "(\n")
    two = run_to_end("-E", "production", "--chdir", @home, app: "#{@home}/#{APP}")
    assert_equal 1, two.status.exitstatus
    assert_equal "first", one.get("/").body
  end

  def test_off_where_it_is_said
    assert_empty E2E::Processes.descriptors(serve("--no-dev").pid).values.grep(/inotify/)
    one = serve
    wait_until("inotify") { E2E::Processes.descriptors(one.pid).values.grep(/inotify/).any? } unless E2E.portable? # which looks at the files
    two = run_to_end("--dev", "--daemonize", app: "#{@home}/#{APP}")
    assert_equal 1, two.status.exitstatus
    assert_match(/dev and daemonize exclude each other/, two.stderr)
  end
end

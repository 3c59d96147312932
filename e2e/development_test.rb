# frozen_string_literal: true

require_relative "support"
require_relative "support/terminal"

# What a developer sees: pages of errors, and that production has none.
E2E.suite("development", transports: [:tcp]) do
  app = E2E::RUBY ? <<~'RUBY' : <<~'PERL'
    def buy(env)
      raise KeyError, "no <b>thing</b>" # line 2
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/body" then [200, {}, Enumerator.new { |_| buy(env) }]
      when "/bad" then nil
      when "/debug"
        value = 41
        binding.irb
        [200, { "content-type" => "text/plain" }, ["value #{value}"]]
      when "/slow"
        warn "the call has begun"
        sleep
      when "/fine" then [200, { "content-type" => "text/plain" }, ["fine"]]
      else buy(env)
      end
    }
  RUBY
    use strict; use warnings; sub buy {
        die "no <b>thing</b>\n"; # line 2
    }

    sub {
        my ($env) = @_;
        my $path = $env->{PATH_INFO};
        return sub { buy($env) } if $path eq '/body';
        if ($path eq '/debug') {
            my $value = 41;
            $DB::single = 1;
            return [200, ['Content-Type' => 'text/plain'], ["value $value"]];
        }
        if ($path eq '/slow') { print STDERR "the call has begun\n"; sleep while 1 }
        return undef if $path eq '/bad';
        return [200, ['Content-Type' => 'text/plain'], ['fine']] if $path eq '/fine';
        return buy($env);
    }
  PERL

  define_method(:write_app) do
    @dir = Dir.mktmpdir("oribi-e2e")
    "#{@dir}/app#{E2E.differing(:app_extension)}".tap { |path| File.write(path, app) }
  end

  define_method(:teardown) do
    super()
    @terminal&.cleanup
    FileUtils.remove_entry(@dir) if @dir
  end

  define_method(:test_a_failed_call_is_answered_with_a_page) do
    path = write_app
    name = File.basename(path)
    one = start("--env", "development", app: path)
    secrets = { "Cookie" => "sid=geheim", "Authorization" => "Basic geheim", "X-Api-Key" => "geheim" }
    html = one.get("/cart?token=geheim&page=2", secrets.merge("Accept" => "text/html,*/*"))
    assert_equal [500, "text/html; charset=utf-8", "no-store"], [html.status, html["content-type"], html["cache-control"]]
    assert_includes html.body, "no &lt;b&gt;thing&lt;/b&gt;"
    assert_includes html.body, "<code>#{name}:2</code>"
    refute_match(/geheim/, html.body)

    plain = one.get("/cart", secrets)
    assert_match(%r{\A(?:KeyError: )?no <b>thing</b>\nGET /cart\n\n#{name}:2\n}, plain.body)
    assert_match(/the application's frames\n  #{name}:2 in (?:\w+::)*buy\n/, plain.body)
    json = JSON.parse(one.get("/cart", { "Accept" => "application/json" }).body)
    assert_equal [name, 2, true], [json["file"], json["line"], json["trace"][0]["application"]]
    assert_match(/\A\{/, one.get("/cart", { "X-Requested-With" => "XMLHttpRequest" }).body)

    assert_match(/no <b>thing/, one.get("/body").body)
    assert_equal 500, one.get("/bad").status
    assert_equal "fine", one.get("/fine").body
    head = connect(one).head("/cart")
    assert_equal [500, ""], [head.status, head.body]
    wait_until("the log, as ever; #{one.stderr}") { one.stderr.include?("the application died") }
  end

  define_method(:test_production_shows_nothing) do
    one = start("--env", "production", app: write_app)
    assert_equal "500 Internal Server Error\n", one.get("/cart", { "Accept" => "text/html" }).body
    assert_equal "500 Internal Server Error\n", one.get("/body", { "Accept" => "text/html" }).body
  end

  # What answers with a page of its own in development, and what the words of that page are; one that has none.
  frameworks = E2E::RUBY ? {
    "sinatra" => ["require 'sinatra/base'\nApp = Class.new(Sinatra::Base) { set :environment, :development\nget('/') { raise 'own' } }\nrun App",
                  /BACKTRACE/],
    "roda" => ["require 'roda'\nApp = Class.new(Roda) { route { |r| r.root { raise 'own' } } }\nrun App.freeze.app", /<footer>oribi/],
    "show_exceptions" => ["use Rack::ShowExceptions\nrun ->(_env) { raise 'own' }", /Rack::ShowExceptions/],
  } : {
    "dancer2" => ["package App; use Dancer2; set show_errors => 1; get '/' => sub { die 'own' }; App->to_app;", /Powered by .*Dancer2/],
    "mojolicious" => ["use Mojolicious::Lite; get '/' => sub { die 'own' }; app->start('psgi');", /development mode/],
    "stack_trace" => ["use Plack::Builder; builder { enable 'StackTrace'; sub { die 'own' } };", /Error: own at/],
    "plain" => ["sub { die 'own' }", /<footer>oribi-psgi/],
  }

  frameworks.each do |name, (source, words)|
    define_method(:"test_the_page_of_#{name}") do
      File.write(path = write_app, source)
      page = start("--env", "development", app: path).get("/", { "Accept" => "text/html" })
      assert_equal 500, page.status
      assert_match(words, page.body)
      assert_equal 1, page.body.scan(/<!doctype/i).size
      assert_equal words.source.include?("oribi"), page.body.include?("<footer>oribi")
    end
  end

  define_method(:on_terminal) do |*words, before: [], env: {}|
    @port = E2E.free_port
    path = write_app
    here = { "RUBYLIB" => "#{E2E::ROOT}/ruby/lib", "PERL5LIB" => "#{E2E::ROOT}/perl/blib/lib:#{E2E::ROOT}/perl/blib/arch" }
    @terminal = E2E::Terminal.new(*before, E2E::Server.binary, "--bind", "127.0.0.1:#{@port}", "--workers", "1", *words, path,
                                  columns: 200, env: here.merge(env))
  end

  define_method(:ask) { |path| E2E::Client.new(["127.0.0.1", @port]).request("GET", path) }

  define_method(:test_a_terminal_shows_link_log_and_what_ctrl_c_waits_for) do
    opened = "#{Dir.tmpdir}/oribi-opened-#{Process.pid}"
    one = on_terminal("--open", env: { "BROWSER" => "touch #{opened} %s:nothing" })
    one.await_bytes(%r{info: http://127\.0\.0\.1:#{@port}; Ctrl-C to stop})
    one.await_bytes(%r{open: a browser shows http://127\.0\.0\.1:#{@port}})
    wait_until("the browser") { File.exist?(opened) }
    assert_equal 200, ask("/fine?a=1").read_response.status
    one.await_bytes(%r{\d\d:\d\d:\d\d GET     \e\[32m200\e\[0m +\d+\.\d ms +4 B   /fine\?a=1\r\n})
    ask("/slow")
    one.await_bytes(/the call has begun/)
    one.type("\x03")
    one.await_bytes(%r{waiting 1 s at most for 1 request: GET /slow for \d+\.\d s; Ctrl-C again stops now})
    one.await_bytes(/info: stopping\r/)
    one.type("\x03")
    one.wait
    assert_match(/stopping now/, one.bytes)
    assert_equal 0, one.status.exitstatus
  ensure
    FileUtils.rm_f(opened)
  end

  define_method(:test_one_ctrl_c_is_enough_and_no_colour_or_browser_where_there_is_none) do
    one = on_terminal("--open", env: { "NO_COLOR" => "1", "BROWSER" => nil, "DISPLAY" => nil, "WAYLAND_DISPLAY" => nil })
    one.await_bytes(/open: no browser is started: there is neither BROWSER nor DISPLAY/)
    ask("/fine").read_response
    one.await_bytes(%r{ GET     200 +\d+\.\d ms +4 B   /fine\r\n})
    ask("/slow")
    one.await_bytes(/the call has begun/)
    one.type("\x03")
    one.wait
    assert_match(/waiting 1 s at most.*stopping now/m, one.bytes)
    assert_equal 0, one.status.exitstatus
  end

  # One call stops at a prompt, whose words change what it answers. In Ruby others go on meanwhile.
  define_method(:test_a_debugger_has_the_terminal) do
    one = E2E::RUBY ? on_terminal("--threads", "2", "--call-timeout", "0.3", env: { "IRBRC" => "/dev/null" }) : on_terminal(before: %w[perl -d])
    one.await_bytes(/DB<1>/) && one.type("c\n") unless E2E::RUBY
    one.await_bytes(/Ctrl-C to stop/)
    stopped = ask("/debug")
    one.await_bytes(E2E::RUBY ? /irb\(.*:001/ : /return \[200.*DB<1>/m)
    3.times { assert_equal "fine", ask("/fine").read_response.body } if E2E::RUBY
    one.type(E2E::RUBY ? "value = 99\n" : "$value = 99\n")
    one.await_bytes(E2E::RUBY ? /irb\(.*:002/ : /DB<2>/)
    one.type(E2E::RUBY ? "exit\n" : "c\n")
    assert_equal "value 99", stopped.read_response.body
    assert_equal "fine", ask("/fine").read_response.body
    refute_match(/over|do not know how to create|fight for/, one.bytes)
  end

  define_method(:test_open_is_for_development) do
    one = start("--env", "production", "--open", app: write_app)
    wait_until("the sentence; #{one.stderr}") { one.stderr.include?("open: no browser is started: the environment is not development") }
  end
end

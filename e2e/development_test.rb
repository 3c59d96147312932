# frozen_string_literal: true

require_relative "support"

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
end

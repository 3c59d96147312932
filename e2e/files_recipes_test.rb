# frozen_string_literal: true

require_relative "support"
require_relative "support/nginx"

# The recipes of doc/files.md, each run as it stands there: a block whose first line is a comment with a file's name
# becomes that file.
E2E.suite("files_recipes", transports: %i[tcp]) do
  page = File.read(File.join(E2E::ROOT, "doc/files.md"))
  define_method(:page) { page }

  include E2E::Home

  # Name => text of the blocks below a heading.
  def blocks(heading)
    section = page[/^#+ #{Regexp.escape(heading)}\n(.*?)(?=^##|\z)/m, 1] or flunk("no recipe #{heading}")
    section.scan(/^```\w+\n(# (\S+)\n.*?)^```$/m).to_h { |text, name| [name, text] }
  end

  # Writes what the recipe has for this language.
  def recipe(heading)
    found = blocks(heading).select { |name, _| name.end_with?(*(E2E::RUBY ? %w[.rb .ru] : %w[.pl .psgi])) }
    refute_empty found
    found.each { |name, text| file(name, text) }
  end

  def app(text) = file(E2E::RUBY ? "config.ru" : "app.psgi", E2E::RUBY ? %(run ->(_) { [200, {}, ["#{text}"]] }) : "sub { [200, [], ['#{text}']] }")

  def library
    return { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") } if E2E::RUBY

    { "PERL5LIB" => %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }.join(":") }
  end

  def served(*words, env: {})
    argv = [E2E::Server.binary, "-b", "127.0.0.1:%{port}", "-w", "1", *words]
    E2E::Server.new(argv: argv, env: { "E2E_CHDIR" => @home, **library, **env }).tap { |one| @servers << one }.start
  end

  def gem_there(name, *version)
    gem name, *version
  rescue Gem::LoadError => e
    skip "no #{name} here: #{e.message}"
  end

  def body_and_cache(answer) = [answer.status, answer.body, answer["cache-control"]]

  FOREVER = "public, max-age=31536000, immutable" unless const_defined?(:FOREVER)

  # Assets of the page's first words, and what both commands make of them.
  def test_the_first_words
    section = page[/\A.*?(?=^## )/m]
    name = "config/oribi#{E2E::RUBY ? ".rb" : ".pl"}"
    file(name, section[/^```\w+\n(# #{Regexp.escape(name)}\n.*?)^```$/m, 1])
    file("public/assets/a.js", "1")
    file("public/robots.txt", "all")
    app("app")
    one = served
    assert_equal [200, "1", FOREVER], body_and_cache(one.get("/assets/a.js"))
    assert_equal [200, "all", nil], body_and_cache(one.get("/robots.txt"))
    assert_equal [404, "app"], [one.get("/assets/b.js").status, one.get("/b").body]
    options = section[/^oribi (--static.*?) +#/, 1].split
    File.delete(File.join(@home, name))
    assert_equal %w[1 all app], served(*options).then { |bare| %w[/assets/a.js /robots.txt /b].map { |path| bare.get(path).body } }
  end

  def test_the_line_with_settings
    word = page[/`--static '([^']*docs[^']*)'`/, 1]
    file("public/docs/index.html", "index")
    file("public/docs/about.html", "about")
    app("app")
    one = served("--static", word)
    assert_equal %w[index about], %w[/docs/ /docs/about].map { |path| one.get(path).body }
    assert_equal "noindex", one.get("/docs/")["x-robots-tag"]
    assert_equal [301, "/docs/"], one.get("/docs").then { |answer| [answer.status, answer["location"]] }
  end

  def test_what_the_path_leads_to
    file("public/dir/a.txt", "a")
    file("public/.env", "secret")
    file("public/.well-known/x", "known")
    system("mkfifo", File.join(@home, "public/fifo"), exception: true)
    app("app")
    one = served("--static", "/p=public", "--static", "public")
    { "dir/a.txt" => [200, 200], "dir" => [404, :app], "none" => [404, :app], "fifo" => [404, :app], "dir/../dir/a.txt" => [404, :app],
      "./dir/a.txt" => [404, :app], "dir//a.txt" => [404, :app], "dir%2Fa.txt" => [404, :app], ".env" => [404, :app], ".well-known/x" => [404, 200],
      "dir%00" => [400, :app], "dir%2" => [400, :app] }.each do |path, (prefix, root)|
      assert_equal prefix, one.get("/p/#{path}").status, path
      answer = one.get("/#{path}")
      root == :app ? refute_equal("a", answer.body, path) : assert_equal(root, answer.status, path)
      assert_equal "app", answer.body, path if root == :app && (E2E::RUBY || !path.include?("%2"))
    end
    assert_equal "app", one.connect.post("/dir/a.txt", "x").body
  end

  if E2E::RUBY
    def test_sinatra
      gem_there "sinatra"
      recipe("Sinatra, Dancer2, Mojolicious")
      file("config.ru", <<~RUBY)
        require "sinatra/base"
        run Class.new(Sinatra::Base) { disable :static; get("/") { "hello" } }
      RUBY
      file("public/a.css", "p{}")
      one = served(env: { "APP_ENV" => "production" })
      assert_equal [200, "p{}", "public, max-age=300"], body_and_cache(one.get("/a.css"))
      assert_equal ["hello", 404], [one.get("/").body, one.get("/none.css").status]
    end

    def rails_application
      gem_there "railties", ">= 7.0"
      gem_there "propshaft"
      file("config.ru", "require_relative 'config/environment'\nrun Rails.application\n")
      file("config/environment.rb", "require_relative 'application'\nRails.application.initialize!\n")
      file("Rakefile", "require_relative 'config/application'\nRails.application.load_tasks\n")
      file("app/assets/javascripts/app.js", "one()")
      file("config/application.rb", <<~RUBY)
        gem "railties", ">= 7.0"
        require "rails"
        require "action_controller/railtie"
        require "propshaft"

        class Site < Rails::Application
          config.load_defaults Rails::VERSION::STRING.to_f
          config.eager_load = false
          config.secret_key_base = "0" * 64
          config.hosts.clear
          config.assets.paths << root.join("app/assets/javascripts")
          config.public_file_server.headers = { "X-Sent-By" => "Rails" }
          config.force_ssl = ENV.key?("SITE_SSL")
          config.logger = Logger.new($stderr, level: :warn)
          routes.append { root to: "home#show" }
        end

        class HomeController < ActionController::Base
          def show = render(plain: helpers.javascript_include_tag("app"))
        end
      RUBY
    end

    # Propshaft's own digests; Rails' ActionDispatch::Static is there and sees what the mounts do not have.
    def test_rails
      rails_application
      recipe("Rails with Propshaft, Sprockets or Vite")
      file("public/robots.txt", "all")
      env = { "RAILS_ENV" => "production", "RAILS_SERVE_STATIC_FILES" => "1" }
      assert system(env, "rake", "assets:precompile", chdir: @home, out: File::NULL, err: File::NULL)
      file("public/vite/assets/main-1a2b.js", "vite()")
      one = served("-E", "production", env: env)
      path = one.get("/").body[/src="([^"]+)"/, 1]
      assert_match %r{\A/assets/app-\h+\.js\z}, path
      answer = one.get(path)
      assert_equal [200, "one()\n", FOREVER], body_and_cache(answer).then { |status, body, cache| [status, "#{body.strip}\n", cache] }
      assert_equal [200, "all"], one.get("/robots.txt").then { |robots| [robots.status, robots.body] }
      assert_equal "vite()", one.get("/vite/assets/main-1a2b.js").body
      assert_equal [nil, nil], [answer["x-sent-by"], one.get("/robots.txt")["x-sent-by"]]
      assert_equal [404, nil], one.get("/assets/none.js").then { |none| [none.status, none["x-request-id"]] }
      refute_match(/can be sent without/, one.stderr)
      one.stop
      bare = served("-E", "production", "-C", "/dev/null", env: env)
      assert_equal "Rails", bare.get("/robots.txt")["x-sent-by"], "without mounts it is Rails that sends"
      assert_match(/can be sent without/, bare.stderr)
    end

    # As the page says: what its middleware does to all answers is not done to files, unless the mount has it.
    def test_rails_with_force_ssl
      rails_application
      header = page[/`header: "(Strict-Transport-Security: [^"]+)"`/, 1]
      file("config/oribi.rb", "static 'public', header: '#{header}'\nstatic '/bare', 'public'\n")
      file("public/robots.txt", "all")
      one = served("-E", "production", env: { "RAILS_ENV" => "production", "SITE_SSL" => "1" })
      assert_equal 301, one.get("/").status
      assert_equal ["all", "max-age=63072000"], one.get("/robots.txt").then { |answer| [answer.body, answer["strict-transport-security"]] }
      assert_equal ["all", nil], one.get("/bare/robots.txt").then { |answer| [answer.body, answer["strict-transport-security"]] }
    end

    def test_check_says_where_health_stands_before_the_applications_own_route
      rails_application
      site = File.join(@home, "config/application.rb")
      File.write(site, File.read(site).sub("routes.append {", "routes.append { get '/up', to: 'home#show';"))
      argv = [E2E::Server.binary, "--check", "--health"]
      { "/up" => /^health "\/up" stands before the application's own route \/up \(home#show\)$/, "/none" => /\Aconfig.ru: / }.each do |path, said|
        one = E2E::Server.new(argv: [*argv, path], env: { "E2E_CHDIR" => @home, **library, "RAILS_ENV" => "production" }).tap { |it| @servers << it }.run_to_end
        assert_equal 0, one.status.exitstatus, one.stderr
        assert_match said, one.stdout
      end
    end

    def test_rails_in_development_starts_without_the_folders
      rails_application
      recipe("Rails with Propshaft, Sprockets or Vite")
      file("public/robots.txt", "all")
      one = served(env: { "RAILS_ENV" => "development" })
      assert_equal "all", one.get("/robots.txt").body
      path = one.get("/").body[/src="([^"]+)"/, 1]
      assert_equal [200, "one()"], one.get(path).then { |answer| [answer.status, answer.body] }, one.stderr
    end
  else
    def test_dancer2
      recipe("Sinatra, Dancer2, Mojolicious")
      file("app.psgi", "use Dancer2;\nset static_handler => 0;\nget '/' => sub { 'hello' };\nto_app;\n")
      file("public/a.css", "p{}")
      one = served
      assert_equal [200, "p{}", "public, max-age=300"], body_and_cache(one.get("/a.css"))
      assert_equal ["hello", 404], [one.get("/").body, one.get("/none.css").status]
    end

    def test_mojolicious
      recipe("Sinatra, Dancer2, Mojolicious")
      file("app.psgi", "use Mojolicious::Lite;\nget '/' => { text => 'hello' };\napp->start('psgi');\n")
      file("public/a.css", "p{}")
      one = served
      assert_equal [200, "p{}", "public, max-age=300"], body_and_cache(one.get("/a.css"))
      assert_equal ["hello", 404], [one.get("/").body, one.get("/none.css").status]
    end
  end

  def test_fixed_answers
    recipe("Fixed answers")
    app("app")
    one = served
    assert_equal [200, "User-agent: *\nDisallow: /admin\n"], one.get("/robots.txt").then { |answer| [answer.status, answer.body] }
    assert_equal [[410, nil], [301, "/new"], [308, "/is/x/y?z"]],
                 %w[/xmlrpc.php /old /was/x/y?z].map { |path| one.get(path).then { |answer| [answer.status, answer["location"]] } }
    assert_equal "app", one.get("/old/").body
  end

  def test_a_single_page_application
    recipe("A single-page application")
    file("dist/index.html", "<script>")
    file("dist/assets/main-1a2b.js", "main()")
    one = served
    assert_equal [200, "main()", FOREVER], body_and_cache(one.get("/assets/main-1a2b.js"))
    %w[/ /index.html /users/5 /deep/er/path].each { |path| assert_equal [200, "<script>", "no-cache"], body_and_cache(one.get(path)), path }
    assert_equal ['{"ok":true}', 404], [one.get("/api/x").body, one.get("/assets/gone.js").status]
  end

  def test_downloads_behind_a_login
    recipe("Downloads behind a login")
    bytes = Random.bytes(300_000)
    File.binwrite(file("private/report.bin", ""), bytes)
    one = served
    assert_equal [403, "no\n"], one.get("/report.bin").then { |answer| [answer.status, answer.body] }
    login = { "Authorization" => "Bearer secret" }
    assert_equal [200, bytes, "private"], body_and_cache(one.get("/report.bin", login))
    assert_equal 404, one.get("/other.bin", login).status
  end

  def test_capistrano
    %w[1 2].each do |n|
      file("releases/#{n}/public/a.js", "release #{n}")
      FileUtils.mkdir_p(File.join(@home, "shared/public/uploads"))
      File.symlink("../../../shared/public/uploads", File.join(@home, "releases/#{n}/public/uploads"))
    end
    file("shared/public/uploads/b.txt", "kept")
    File.symlink("releases/1", File.join(@home, "current"))
    recipe("Capistrano")
    app("app")
    one = served
    assert_equal ["release 1", "kept"], %w[/a.js /uploads/b.txt].map { |path| one.get(path).body }
    File.symlink("releases/2", File.join(@home, "next"))
    File.rename(File.join(@home, "next"), File.join(@home, "current"))
    wait_until("the new release") { one.get("/a.js").body == "release 2" }
    assert_equal "kept", one.get("/uploads/b.txt").body
  end

  def test_nginx_in_front
    skip E2E::Nginx.missing if E2E::Nginx.missing
    file("public/a.js", "a()")
    app("app")
    one = served("--static", "public?header=X-Sent-By:us")
    blocks("nginx in front, and none").each do |name, text|
      port = E2E.free_port
      text = text.gsub("127.0.0.1:9292", one.bind).gsub("/srv/app/public", File.join(@home, "public"))
      nginx = E2E::Nginx.new(E2E::Nginx.whole(text, port))
      nginx.wait_for(port)
      client = E2E::Client.new(["127.0.0.1", port])
      answer = client.get("/a.js")
      assert_equal ["a()", name == "files.conf" ? nil : "us"], [answer.body, answer["x-sent-by"]], name
      assert_equal "app", client.get("/other").body, name
    ensure
      client&.close
      nginx&.stop
    end
  end
end

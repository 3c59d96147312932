# frozen_string_literal: true

require "json"
require "open3"
require_relative "support"
require_relative "support/pages"

RAILS_FILES = {
  "config.ru" => <<~RUBY,
    require_relative "config/environment"
    run Rails.application
  RUBY
  "config/boot.rb" => "gem \"railties\", \">= 7.0\"\n",
  "config/application.rb" => <<~RUBY,
    require_relative "boot"
    require "rails"
    require "action_controller/railtie"

    class Hello < Rails::Application
      config.load_defaults 7.0
      config.eager_load = true
      config.secret_key_base = "0" * 64
      config.hosts.clear
      config.logger = Logger.new($stderr, level: :warn)
    end

    class HelloController < ActionController::Base
      def show = render(plain: "Hello from Rails to \#{params[:name]} at \#{request.remote_ip}")
      def create = render(plain: "got \#{params[:word]}", status: 201)
      def live = redirect_to("/hello/redirected")

      # Or Rack::ETag would read the body before it is sent.
      before_action(only: %i[rows streamed]) { headers["Last-Modified"] = Time.now.httpdate }

      # What ends with the request is there for the last row: the body is not closed before.
      def rows
        Current.rows = 3
        self.response_body = Enumerator.new { |rows| Current.rows.times { |i| rows << "row \#{i}\\n" } }
      end

      # As Active Storage serves files.
      def file
        self.status, headers, self.response_body = Rack::Files.new(nil).serving(request, __FILE__)
        headers.each { |name, value| response.headers[name] = value }
      end

      # Rails frames such answers itself.
      def streamed = render(template: "streamed", layout: false, stream: true)
    end

    class Current < ActiveSupport::CurrentAttributes
      attribute :rows
    end
  RUBY
  "config/environment.rb" => <<~RUBY,
    require_relative "application"
    Rails.application.initialize!
    Rails.application.routes.draw do
      get "/hello/:name", to: "hello#show"
      post "/hello", to: "hello#create"
      get "/away", to: "hello#live"
      %w[rows file streamed].each { |name| get "/\#{name}", to: "hello#\#{name}" }
    end
    HelloController.skip_forgery_protection
  RUBY
  "app/views/streamed.html.erb" => "one, <%= 'two' %>",
  "bin/rails" => <<~RUBY,
    #!/usr/bin/env ruby
    APP_PATH = File.expand_path("../config/application", __dir__)
    require_relative "../config/boot"
    require "rails/commands"
  RUBY
}.freeze

# A Rails application, written fresh, over both transports and by the rails command. Rack only.
if E2E::RUBY
  E2E.suite("rails", transports: E2E::EITHER) do
    def setup
      super
      gem "railties", ">= 7.0"
      @app = Dir.mktmpdir("oribi-rails")
      RAILS_FILES.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(@app, path)))
        File.write(File.join(@app, path), text)
      end
    rescue Gem::LoadError => e
      skip "no Rails here: #{e.message}"
    end

    def teardown
      super
      FileUtils.remove_entry(@app) if @app
    end

    def assert_answers(one)
      client = connect(one)
      assert_match(/\AHello from Rails to Ann at /, client.get("/hello/Ann").body)
      response = client.post("/hello", "word=blue", { "Content-Type" => "application/x-www-form-urlencoded" })
      assert_equal [201, "got blue"], [response.status, response.body]
      assert_equal 302, client.get("/away").status
      assert_equal 404, client.get("/nowhere").status
    end

    def assert_streams(one)
      client = connect(one)
      assert_equal ["row 0\nrow 1\nrow 2\n", :chunked], client.get("/rows").then { |answer| [answer.body, answer.framing] }
      code = File.binread(File.join(@app, "config/application.rb"))
      assert_equal [200, code], client.get("/file").then { |answer| [answer.status, answer.body] }
      answer = client.get("/file", { "Range" => "bytes=8-15" })
      assert_equal [206, code[8..15], :length], [answer.status, answer.body, answer.framing], one.stderr
      answer = client.get("/file", { "Range" => "bytes=0-1,4-5" })
      assert_equal 206, answer.status
      assert_includes answer.body, "\r\ncontent-range: bytes 4-5/#{code.bytesize}\r\n\r\n#{code[4..5]}\r\n"
      assert_equal ["one, two", :chunked], client.get("/streamed").then { |answer| [answer.body, answer.framing] }
      assert_equal :length, client.get("/hello/Ann").framing, "an ordinary page has a length"
    end

    def test_with_our_command
      assert_streams start("--env", "production", app: File.join(@app, "config.ru"), env: { "RAILS_ENV" => "production", "E2E_CHDIR" => @app })
      assert_answers start("--env", "production", app: File.join(@app, "config.ru"), env: { "RAILS_ENV" => "production", "E2E_CHDIR" => @app })
    end

    # It takes an address, no socket path.
    if transport == :tcp
      def test_with_rails_server
        FileUtils.mkdir_p("#{@app}/public/assets")
        one = E2E::Server.new(argv: ["ruby", "bin/rails", "server", "-u", "oribi", "-b", "127.0.0.1", "-p", "%{port}", "-e", "production"],
                              env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production" })
        @servers << one
        one.start
        assert_answers(one)
        refute_empty one.descendants, "no worker below: another server answered"
        assert_equal 1, one.stderr.scan(/this Rails application's assets can be sent without it/).size
      end

      # Rails writes a pid file without a word on the command line too (until 7.1 always), and does not start where it
      # finds one of a live process.
      def test_reload_and_upgrade_of_rails_server
        pid_file = "#{@app}/tmp/pids/server.pid"
        one = E2E::Server.new(argv: ["ruby", "bin/rails", "server", "-u", "oribi", "-b", "127.0.0.1", "-p", "%{port}", "-e", "production"],
                              env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production", "PIDFILE" => pid_file },
                              group: true)
        @servers << one
        one.start
        assert_answers(one)
        answer_with(one, "Welcome") { one.signal(:HUP) }
        assert_equal [one.pid, [pid_file]], [File.read(pid_file).to_i, Dir.glob("#{pid_file}*")]
        answer_with(one, "Upgraded") { one.signal(:USR2) }
        assert_equal 0, one.wait.exitstatus, one.stderr
        second = File.read(pid_file).to_i
        assert_match(/ supervisor, /, E2E::Processes.title(second))
        assert_equal [pid_file], Dir.glob("#{pid_file}*")
        answer_with(one, "Again") { Process.kill(:HUP, second) }
        Process.kill(:TERM, second)
        wait_until("the end: #{one.stderr}") { one.group.empty? && Dir.glob("#{pid_file}*").empty? }
        refute_match(/already running/, one.stderr + one.stdout)
      end

      # A Gemfile's line loads the gem so. Puma's is here too, whose name comes first among those that Rails tries.
      def test_the_gem_alone_is_what_rails_server_starts
        File.write("#{@app}/config/application.rb", "require \"oribi\"\n", mode: "a")
        one = E2E::Server.new(argv: ["ruby", "bin/rails", "server", "-b", "127.0.0.1", "-p", "%{port}", "-e", "production"],
                              env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production" })
        @servers << one
        one.start
        assert_answers(one)
        refute_empty one.descendants, "no worker below: another server answered"
        assert_match(/^=> Booting Oribi$/, one.stdout)
      end

      # As doc/rails.md says of Rails' own flags; and the way back to Puma.
      def test_rails_servers_own_flags_hold
        File.write("#{@app}/config/application.rb", "require \"oribi\"\n", mode: "a")
        port, pid_file = E2E.free_port, "#{@app}/own.pid"
        output, status = rails("server", "-b", "127.0.0.1", "-p", port.to_s, "-e", "production", "-d", "-P", pid_file)
        assert_predicate status, :success?, output
        # Rails goes to the background before it starts a server.
        wait_until("an answer") { TCPSocket.open("127.0.0.1", port).close || true rescue false }
        daemon = File.read(pid_file).to_i
        assert_match(/\AHello from Rails/, E2E::Client.new(["127.0.0.1", port]).get("/hello/Ann", { "Connection" => "close" }).body)
        assert_match(/oribi supervisor/, E2E::Processes.title(daemon))
      ensure
        if daemon
          Process.kill(:TERM, daemon)
          wait_until("the end") { !E2E::Processes.alive?(daemon) }
        end
      end

      def test_another_server_that_is_named_is_started
        skip "no puma here" unless Gem::Specification.any? { |spec| spec.name == "puma" }
        File.write("#{@app}/config/application.rb", "require \"oribi\"\n", mode: "a")
        { ["-u", "puma"] => {}, [] => { "RACKUP_HANDLER" => "puma" } }.each do |flags, env|
          one = E2E::Server.new(argv: ["ruby", "bin/rails", "server", *flags, "-b", "127.0.0.1", "-p", "%{port}", "-e", "production"],
                                env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production", **env })
          @servers << one
          one.start
          assert_match(/^=> Booting Puma$/, one.stdout)
          one.signal(:KILL) # Puma may not have its handlers yet
          one.wait
        end
      end

      def rails(*words)
        env = { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "RAILS_ENV" => "test" }
        Open3.capture2e(env, "ruby", "-rpathname", "bin/rails", *words, chdir: @app)
      end

      def test_the_generator_does_what_init_does
        File.write("#{@app}/config/application.rb", "require \"oribi\"\n", mode: "a")
        File.write("#{@app}/Gemfile", "gem \"rails\"\n")
        page = E2E::Page.new("doc/rails.md").blocks("sh", under: "Begin").first.commands.map { |command| command.text.split }
        assert_equal [%w[bundle add oribi], ["bin/rails", "server"]], page.values_at(0, 2)
        output, status = rails(*page[1].drop(1), "--pretend")
        assert_predicate status, :success?, output
        refute_path_exists "#{@app}/config/oribi.rb"
        output, status = rails(*page[1].drop(1))
        assert_predicate status, :success?, output
        assert_match(/^ +create  config.oribi\.rb$/, output)
        assert_equal "gem \"rails\"\ngem \"oribi\"\n", File.read("#{@app}/Gemfile")
        assert_equal "web: bin/oribi\n", File.read("#{@app}/Procfile.dev")
        assert_includes File.read("#{@app}/config/oribi.rb"), "/assets=public/assets"
        assert_match(/^In a Dockerfile:\n  CMD \["\.\/bin\/rails", "server"\]/, output, "its entrypoint prepares the database for that")
        refute_match(/9292/, output)
        FileUtils.rm_r(["#{@app}/config.ru"])
        output, status = rails("generate", "oribi:install")
        assert_match(/^oribi: no config\.ru in /, output)
        refute_predicate status, :success?
      end

      # One port for every command, PORT first; bin/rails restart touches a file.
      def test_the_generators_configuration
        File.write("#{@app}/config/application.rb", "require \"oribi\"\n", mode: "a")
        output, status = rails("generate", "oribi:install")
        assert_predicate status, :success?, output
        env = { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "RAILS_ENV" => "production", "PORT" => nil }
        printed = Open3.capture2e(env, E2E::Server.binary, "--print-config", chdir: @app).first
        assert_match(/^port = 3000$/, printed)
        port = E2E.free_port.to_s
        one = E2E::Server.new(argv: [E2E::Server.binary], env: { **env, "PORT" => port, "E2E_CHDIR" => @app })
        @servers << one
        one.launch
        wait_until("a listening line: #{one.stderr}") { one.stderr[/listening on .*:#{port},/] || (one.ended? && flunk(one.stderr)) }
        output, status = rails("restart")
        assert_predicate status, :success?, output
        wait_until("the reload: #{one.stderr}") { one.stderr.include?("generation 2") }
      end

      # The page's other block: Puma's settings are taken over.
      def test_the_pages_import_and_command
        page = E2E::Page.new("doc/rails.md")
        FileUtils.mkdir_p("#{@app}/config")
        File.write("#{@app}/config/puma.rb", "threads 2, 2\nplugin :tmp_restart\n")
        import = page.blocks("sh", under: "Begin").last.commands.map { |command| command.text.split }
        assert_equal [%w[oribi import config/puma.rb -o config/oribi.rb --force]], import
        env = { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production" }
        output, status = Open3.capture2e(env, E2E::Server.binary, *import.first.drop(1), chdir: @app)
        assert_predicate status, :success?, output
        one = E2E::Server.new(argv: [E2E::Server.binary, "--env", "production", "--port", "%{port}"], env: env)
        @servers << one
        one.start
        assert_answers(one)
        assert_match(/ × 2 threads/, one.stderr)
      end

      def answer_with(one, word)
        code = File.join(@app, "config/application.rb")
        File.write(code, File.read(code).sub(/"\w+ from Rails/, "\"#{word} from Rails"))
        yield
        wait_until("#{word}: #{one.stderr} #{one.stdout}") { one.get("/hello/Ann").body.start_with?(word) }
      end

      # Rails passes 3000 and its own host on as if somebody had asked for them.
      def test_the_configuration_files_port_is_served_unless_a_flag_says_otherwise
        port, other = Array.new(2) { E2E.free_port }
        File.write("#{@app}/config/oribi.rb", "port #{port}\nhost '127.0.0.1'\n")
        { port => [], other => ["-p", other.to_s] }.each do |expected, flags|
          one = E2E::Server.new(argv: ["ruby", "bin/rails", "server", "-u", "oribi", *flags],
                                env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib"), "E2E_CHDIR" => @app, "RAILS_ENV" => "production" })
          @servers << one
          one.launch
          wait_until("a listening line: #{one.stderr}") { one.stderr[/listening on .*/] || (one.ended? && flunk(one.stderr)) }
          assert_match(/ tcp:..127\.0\.0\.1:#{expected},/, one.stderr)
          assert_equal 0, one.stop.exitstatus, one.stderr
          FileUtils.rm_f("#{@app}/tmp/pids/server.pid")
        end
      end
    end
  end
end

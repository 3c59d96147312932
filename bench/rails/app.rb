# frozen_string_literal: true

require "fileutils"

module Bench
  # A fresh Rails application in production mode: `rails new` and its scaffold of posts (nick, body) over SQLite,
  # generated under build/ and kept.
  #
  # What is changed after generating is in CHANGES and ADDED and said there; the rest is as Rails makes it. Servers are
  # no part of the application's bundle, so that one application serves all of them: it is loaded without Bundler.
  class RailsApp
    Failed = Class.new(StandardError)

    VERSION = "~> 7.2.0"
    POSTS = 200
    NEW_OPTIONS = %w[--minimal --skip-git --skip-bundle --skip-test --skip-docker --skip-ci --skip-rubocop --skip-brakeman
                     --skip-asset-pipeline --database=sqlite3 --quiet].freeze
    ENVIRONMENT = { "RAILS_ENV" => "production", "RACK_ENV" => "production", "SECRET_KEY_BASE" => "0" * 64, "RAILS_LOG_LEVEL" => "fatal",
                    "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }.freeze

    # file => [[what stands there, what is to stand there]]
    CHANGES = {
      # No Bundler: gems by name, as they are installed.
      "config/boot.rb" => [[/.*/m, "gem \"railties\", \"#{VERSION}\"\n"]],
      "config/application.rb" => [[/^Bundler\.require.*$/, 'require "sqlite3"']],
      # TLS is the business of what stands in front, and nothing does here.
      "config/environments/production.rb" => [[/^\s*config\.force_ssl = true$/, "  config.force_ssl = false"]],
      # The scaffold shows all posts; whoever is faster writes more of them, and would be given more work at each look.
      "app/controllers/posts_controller.rb" => [[/@posts = Post\.all/, "@posts = Post.order(id: :desc).limit(20)"]],
      "db/seeds.rb" => [[/.*/m, <<~RUBY]],
        Post.insert_all(Array.new(#{POSTS}) { |i| { nick: "nick \#{i + 1}", body: "body of post \#{i + 1}\\n" + "Some words more. " * 20 } })
      RUBY
    }.freeze

    # The C function behind `timeout` of config/database.yml sleeps with Ruby's lock held, so that the thread of this
    # process that holds the database's lock cannot give it back: five seconds later one of them fails. Rails 8 with
    # sqlite3 2 waits in Ruby by itself; this is the same for what is installed.
    ADDED = {
      "config/initializers/sqlite_waits_in_ruby.rb" => <<~RUBY,
        module SqliteWaitsInRuby
          def configure_connection
            super
            milliseconds = @config.fetch(:timeout, 5000)
            began = nil
            @raw_connection.busy_handler do |count|
              now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
              began = now if count.zero?
              sleep 0.001
              now - began < milliseconds
            end
          end
        end

        ActiveSupport.on_load(:active_record_sqlite3adapter) { prepend SqliteWaitsInRuby }
      RUBY
    }.freeze

    attr_reader :dir

    def self.missing
      gem "rails", VERSION
      require "sqlite3"
      nil
    rescue LoadError => e
      "#{e.message.lines.first.strip} (script/setup bench)"
    end

    def initialize(build: File.expand_path("../../build", __dir__))
      @dir = File.join(build, "rails/bulletin")
    end

    def config_ru = File.join(dir, "config.ru")
    def template = File.join(dir, "storage/production.sqlite3")
    def database(folder) = File.join(folder, "posts.sqlite3")

    # For the server's process. `folder`: where this run's database is.
    def environment(folder) = ENVIRONMENT.merge("DATABASE_URL" => "sqlite3:#{database(folder)}", "RAILS_MAX_THREADS" => "5")

    # Generates it, unless this version's is there.
    def prepare
      return self if File.exist?(marker) && File.read(marker) == stamp

      FileUtils.rm_rf(dir)
      FileUtils.mkdir_p(File.dirname(dir))
      run(File.dirname(dir), "rails", "_#{Gem::Specification.find_by_name("rails", VERSION).version}_", "new", dir, *NEW_OPTIONS)
      change("config/boot.rb", "config/application.rb", "config/environments/production.rb")
      ADDED.each { |path, text| File.write(File.join(dir, path), text) }
      run(dir, "bin/rails", "generate", "scaffold", "Post", "nick:string", "body:text", "--quiet")
      change("app/controllers/posts_controller.rb", "db/seeds.rb")
      run(dir, "bin/rails", "db:migrate", "db:seed")
      settle
      File.write(marker, stamp)
      self
    end

    # A database of its own for a run; nothing may be using it yet.
    def start(folder)
      FileUtils.cp(template, database(folder))
      self
    end

    # Back to the seeded posts, under a running server.
    def reset(folder)
      db = SQLite3::Database.new(database(folder))
      db.busy_timeout(10_000)
      db.execute("DELETE FROM posts WHERE id > ?", [POSTS])
    ensure
      db&.close
    end

    private

    def marker = File.join(dir, "tmp/generated")
    def stamp = [RUBY_VERSION, Gem::Specification.find_by_name("rails", VERSION).version, File.size(__FILE__)].join(" ")

    # Rails ends without closing its database: what is in the log beside it must get into the file that will be copied.
    def settle
      db = SQLite3::Database.new(template)
      db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    ensure
      db&.close
    end

    def run(folder, *argv)
      env = ENVIRONMENT.merge("DATABASE_URL" => "sqlite3:#{template}", "DISABLE_DATABASE_ENVIRONMENT_CHECK" => "1")
      output = IO.popen(env, argv.map(&:to_s), chdir: folder, err: %i[child out], &:read)
      raise Failed, "#{argv.join(" ")}: #{output.lines.last(5).join}" unless $?.success?
    end

    # What is not found has changed its shape, and must be looked at.
    def change(*paths)
      paths.each do |path|
        text = File.read(File.join(dir, path))
        CHANGES.fetch(path).each { |from, to| text.sub!(from) { to } or raise Failed, "#{path} has no #{from.inspect}" }
        File.write(File.join(dir, path), text)
      end
    end
  end
end

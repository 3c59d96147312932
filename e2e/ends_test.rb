# frozen_string_literal: true

require_relative "support"
require_relative "support/home"

# What an application has begun is brought to its end when a worker ends, as in any program of its language. Ruby's part
# of it: Perl programs end by exit and always did.
if E2E::RUBY
  E2E.suite("ends", transports: [:tcp]) do
    include E2E::Home

    def app
      file("app.ru", <<~RUBY)
        require "tempfile"
        HOME = #{@home.inspect}
        note = ->(text) { File.write("\#{HOME}/notes", "\#{text} \#{Process.pid}\\n", mode: "a") }
        at_exit { note.("at_exit") }
        kept = []
        run lambda { |env|
          case env["PATH_INFO"]
          when "/begin"
            kept << File.open("\#{HOME}/buffered", "w").tap { |io| io.write("buffered") }
            kept << Tempfile.create("kept", HOME).path << Tempfile.new("removed", HOME)
            ObjectSpace.define_finalizer(kept.last, ->(_id) { note.("finalizer") })
            entered = Thread::Queue.new
            kept << Thread.new do
              entered << true
              sleep
            ensure
              note.("ensure")
            end
            entered.pop
          when "/puts" then puts "printed at once"
          end
          [200, {}, [Process.pid.to_s]]
        }
      RUBY
    end

    def notes = File.exist?("#{@home}/notes") ? File.readlines("#{@home}/notes", chomp: true) : []

    def assert_all_ended(one, worker)
      assert_equal %w[at_exit ensure finalizer].map { |text| "#{text} #{worker}" }, notes.sort, one.stderr
      assert_equal "buffered", File.read("#{@home}/buffered")
      assert_empty Dir.glob("#{@home}/removed*")
    end

    %i[TERM QUIT].each do |signal|
      define_method(:"test_a_worker_that_#{signal}_ends") do
        one = start(app: app)
        worker = one.get("/begin").body
        assert_equal 0, one.stop(signal).exitstatus, one.stderr
        assert_all_ended(one, worker)
      end
    end

    def test_a_worker_that_a_reload_replaces
      one = start(app: app)
      worker = one.get("/begin").body
      one.signal(:HUP)
      wait_until("its end") { !E2E::Processes.alive?(worker.to_i) }
      assert_all_ended(one, worker)
      second = one.worker_pid
      refute_equal worker.to_i, second
      assert_equal 0, one.stop.exitstatus
      assert_equal ["at_exit #{second}"], notes.grep(/at_exit/).drop(1)
    end

    def test_a_worker_after_its_last_request
      one = start("--requests-max", "1", app: app)
      worker = one.get("/begin").body
      wait_until("its end") { !E2E::Processes.alive?(worker.to_i) }
      assert_all_ended(one, worker)
    end

    def test_what_a_worker_prints_is_seen_at_once
      one = start("--access-log", "off", app: app)
      one.get("/puts")
      assert_equal "printed at once\n", one.stdout
    end

    # rackup removes its pid file in an at_exit block, which workers have too.
    def test_a_worker_of_rackup_leaves_the_pid_file
      one = E2E::Server.new(argv: ["rackup", "-s", "Oribi", "-E", "none", "-P", "#{@home}/pid", "-o", "127.0.0.1", "-p", "%{port}", "-O", "Workers=1",
                                   "-O", "RequestsMax=1", app], env: { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") })
      @servers << one
      one.start
      worker = one.get("/begin").body
      wait_until("its end") { !E2E::Processes.alive?(worker.to_i) }
      assert_all_ended(one, worker)
      assert_equal one.pid, File.read("#{@home}/pid").to_i
      assert_equal 0, one.stop.exitstatus
      refute_path_exists "#{@home}/pid"
    end
  end
end

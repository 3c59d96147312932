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

    # Commands that read the file, a reload and an upgrade are no end of the server.
    def test_at_exit_in_the_configuration_file
      config = file("oribi.rb", <<~RUBY)
        note = ->(text) { File.write("#{@home}/notes", "\#{text} \#{Process.pid}\\n", mode: "a") }
        at_exit { note.("first") }
        at_exit { note.("second") }
        after_fork { at_exit { note.("hook") } }
        control "#{@home}/control"
        pid_file "#{@home}/pid"
      RUBY
      application = file("plain.ru", "run ->(_) { [200, {}, [Process.pid.to_s]] }")
      one = start("--config", config, app: application, group: true)
      worker = one.worker_pid
      [%w[ctl status], %w[ctl reload], %w[check], %w[--print-config], %w[--check]].each do |words|
        run = E2E::Server.new(argv: [E2E::Server.binary, *words, "-C", config, *(application unless words.first == "ctl")])
        @servers << run
        assert_equal 0, run.run_to_end.status.exitstatus, "#{words}: #{run.stderr}"
      end
      wait_until("the end of the first worker") { !E2E::Processes.alive?(worker) }
      second = one.worker_pid
      assert_equal ["hook #{worker}"], notes
      one.signal(:USR2)
      assert_equal 0, one.wait.exitstatus, one.stderr
      assert_equal ["hook #{worker}", "hook #{second}"], notes
      last = one.worker_pid
      successor = File.read("#{@home}/pid").to_i
      Process.kill(:TERM, successor)
      wait_until("the end of all") { one.group.empty? }
      assert_equal ["hook #{last}", "second #{successor}", "first #{successor}"], notes.drop(2)
    end

    def test_at_exit_in_the_configuration_file_of_a_start_that_fails
      config = file("oribi.rb", "at_exit { File.write('#{@home}/notes', 'ended') }")
      one = run_to_end("--config", config, app: file("bad.ru", "raise 'told to fail'"))
      assert_equal 1, one.status.exitstatus
      assert_empty notes
    end

    def test_at_exit_in_the_configuration_file_of_a_single_process
      config = file("oribi.rb", "at_exit { File.write('#{@home}/notes', \"ended \#{Process.pid}\\n\", mode: 'a') }")
      one = start("--config", config, "--single", app: file("plain.ru", "run ->(_) { Process.wait(fork { exit }); [200, {}, [Process.pid.to_s]] }"))
      assert_equal one.pid, one.worker_pid
      one.signal(:HUP)
      wait_until("the reload: #{one.stderr}") { one.stderr.scan("listening on").size == 2 }
      assert_equal one.pid, one.worker_pid
      assert_empty notes
      assert_equal 0, one.stop.exitstatus
      assert_equal ["ended #{one.pid}"], notes
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

# frozen_string_literal: true

require "etc"
require "fileutils"
require "minitest/autorun"
require "rbconfig"
require "socket"
require "tmpdir"
require "timeout"
require_relative "../../e2e/support/waiting"

# Managers run as programs of their own; each note of theirs is one line of a file. Waiting ends with a condition.
class PreforkTest < Minitest::Test
  DEADLINE = 30 * E2E.patience
  LIBRARY = File.expand_path("../lib", __dir__)
  PRELUDE = <<~RUBY
    require "oribi/prefork"
    NOTES = File.open(ENV.fetch("NOTES"), "a")
    def note(*words) = NOTES.syswrite(words.join(" ") + "\n")
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  RUBY
  # What most programs do: workers that wait for the end, until TERM.
  LOOP = <<~RUBY
    until pm.signal_received == "TERM"
      pm.start do |worker|
        worker.stopping? # from here on TERM only asks
        note "up", $$, worker.index, worker.generation
        worker.wait
        note "down", $$
      end
      note "back", pm.signal_received, pm.num_workers
    end
    note "left", pm.wait_all_children
  RUBY

  def setup
    @dir = Dir.mktmpdir
    @notes = File.join(@dir, "notes")
    File.write(@notes, "")
    @pids = []
  end

  # Whatever a manager has left behind would show here: its workers are killed and the test fails. A mold reads its
  # manager's end from a pipe, so that it ends a moment later.
  def teardown
    @pids.each { |pid| kill(:KILL, pid) && reap(pid) }
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
    IO.select(nil, nil, nil, 0.01) until marked.empty? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    left = marked
    left.each { |pid| kill(:KILL, pid) }
    FileUtils.rm_rf(@dir)
    assert_empty left, "processes were left behind"
  end

  def test_workers_run_the_block_until_term_and_start_says_true
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 3)\nnote 'said', pm.start { |w| note 'up', $$; w.wait }\nnote 'left', pm.wait_all_children")
    wait_for { count("up") == 3 }
    assert_equal 3, words("up").uniq.size
    assert(words("up").all? { |worker| parent(worker) == pid })
    stop(pid)
    assert_equal ["true"], words("said")
    assert_equal ["0"], words("left")
  end

  def test_names_and_defaults_of_the_predecessor
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new
      note "defaults", pm.max_workers, pm.spawn_interval, pm.err_respawn_interval, pm.trap_signals.inspect, pm.signal_received.inspect
      pm = Oribi::Prefork.new("max_workers" => 1, "spawn_interval" => 0.5, "trap_signals" => { "TERM" => nil }, "before_fork" => ->(m) { note "before", $$ },
                              "after_fork" => ->(m, pid) { note "after", $$, pid == $$ }, "on_child_reap" => ->(pid, status) { note "reap", pid, status })
      pm.start { note "up", $$, Process.ppid; sleep }
      note "trapped", pm.signal_received, pm.num_workers, pm.manager_pid == $$
      note "sent", pm.signal_all_children("TERM")
      note "left", pm.wait_all_children(0)
    RUBY
    wait_for { count("after") == 1 && count("up") == 1 }
    worker, above = words("up")
    stop(pid)
    assert_equal ["10", "0", "1", '{"TERM"=>"TERM"}', '""'], words("defaults")
    assert_equal [pid, pid, "false"].map(&:to_s), words("before") + words("after")
    assert_equal pid.to_s, above
    assert_equal %w[TERM 1 true], words("trapped"), "nothing is sent for a signal that maps to nil"
    assert_equal [["1"], ["0"]], [words("sent"), words("left")]
    assert_equal [worker, "15"], words("reap"), "a worker that asks nothing is ended by TERM as any program"
  end

  def test_a_second_start_is_a_new_generation_within_the_same_number
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 2, trap_signals: { 'TERM' => 'TERM', 'HUP' => 'TERM' })\n#{LOOP}")
    wait_for { count("up") == 2 }
    kill(:HUP, pid)
    wait_for { count("up") == 4 }
    stop(pid)
    assert_equal [%w[1 1 2 2], 4], [lines("up").map(&:last).sort, count("down")]
    assert_equal [%w[HUP 2], %w[TERM 2]], lines("back")
    assert_equal ["0"], words("left")
  end

  def test_workers_of_an_earlier_start_count_until_they_end
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 2, trap_signals: { 'TERM' => 'TERM', 'HUP' => nil })\n#{LOOP}")
    wait_for { count("up") == 2 }
    first = lines("up").map(&:first)
    kill(:HUP, pid)
    wait_for { count("back") == 1 }
    kill(:TERM, first[0].to_i)
    wait_for { count("up") == 3 }
    assert_equal %w[1 1 2], lines("up").map(&:last)
    assert alive?(first[1]), "nobody asked it to end"
    stop(pid)
  end

  def test_spawn_interval
    pid = run_manager("note 'at', now\npm = Oribi::Prefork.new(max_workers: 3, spawn_interval: 0.3, after_fork: ->(*) { note 'at', now })\n#{LOOP}")
    wait_for { count("up") == 3 }
    stop(pid)
    began, *at = words("at").map(&:to_f)
    assert_paced 0.3, began, at
  end

  def test_paced_signal
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 3, trap_signals: { 'TERM' => ['TERM', 1] })\n" \
                      "pm.start { |w| w.stopping?; note 'up', $$; w.wait; note 'down', now }\n" \
                      "begin note 'count', pm.wait_all_children(0.05) end while pm.num_workers > 0")
    wait_for { count("up") == 3 }
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    stop(pid)
    assert_paced 1, began, words("down").map(&:to_f)
    assert_equal %w[0 1 2], words("count").uniq.sort & %w[0 1 2]
  end

  def test_a_worker_that_fails_at_once_is_paced
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 0.3, on_child_reap: ->(_, pid, status) { note "reap", status })
      pm.start { note "at", now; exit 3 }
      pm.wait_all_children
    RUBY
    wait_for { count("reap") >= 3 } # the stop would end the last one by its signal
    stop(pid)
    gaps = words("at").map(&:to_f).each_cons(2).map { |a, b| b - a }
    assert_operator gaps[0], :>=, 0.29
    assert_operator gaps[1], :>=, 0.58, "doubled while workers do not even last a second"
    assert_equal [(3 << 8).to_s], words("reap").first(3).uniq
  end

  def test_a_worker_that_ends_well_is_replaced_at_once
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 600)\npm.start { note 'up', $$ }\npm.wait_all_children")
    wait_for { count("up") >= 5 }
    stop(pid)
  end

  def test_a_block_that_raises_ends_the_worker_only
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 600, on_child_reap: ->(_, pid, status) { note 'reap', status })\n" \
                      "at_exit { note 'exit', $$ }\npm.start { raise 'no queue' }\nnote 'back', $$\npm.wait_all_children")
    wait_for { count("reap") == 1 }
    stop(pid)
    assert_equal [["256"], [pid.to_s], [pid.to_s]], [words("reap"), words("back"), words("exit")]
    assert_match(/the worker died: RuntimeError: no queue/, log)
  end

  # By its block's end, and by TERM, of which it dies. Those that come after it wait for the stop.
  def test_the_end_of_a_worker_runs_ensure_of_threads_and_removes_its_tempfiles
    ["nil", "Process.kill(:TERM, $$); sleep"].each do |last|
      before = count("reap")
      pid = run_manager(<<~RUBY)
        require "tempfile"
        kept = Tempfile.new("manager")
        at_exit { note "kept", File.exist?(kept.path) }
        pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 600, on_child_reap: ->(*) { note "reap", "once" })
        pm.start do
          sleep if File.exist?(ENV["NOTES"] + ".#{before}")
          File.write(ENV["NOTES"] + ".#{before}", "")
          ready = Queue.new
          Thread.new { begin; ready << 1; sleep; ensure; note "ensure", $$; end }
          ready.pop
          file = Tempfile.new("worker")
          note "path", file.path
          #{last}
        end
        pm.wait_all_children
      RUBY
      wait_for { count("reap") > before }
      stop(pid)
      assert_operator count("ensure"), :>=, count("path")
      assert_empty words("path").select { |path| File.exist?(path) }
      assert_equal ["true"], words("kept").uniq
    end
  end

  def test_term_lets_a_job_end_and_a_second_one_does_not
    program = <<~RUBY
      pm = Oribi::Prefork.new(max_workers: 1)
      pm.start do |worker|
        until worker.stopping?
          worker.job("long") { note "begun", $$; sleep 0.01 until File.exist?(ENV["NOTES"] + ".go"); note "done", $$ }
        end
      end
      note "trapped"
      note "left", pm.wait_all_children
    RUBY
    pid = run_manager(program)
    wait_for { count("begun") == 1 }
    kill(:TERM, pid)
    wait_for { count("trapped") == 1 }
    assert_equal 0, count("done")
    File.write("#{@notes}.go", "")
    assert reap(pid).success?
    assert_equal [1, 1, ["0"]], [count("begun"), count("done"), words("left")]

    File.unlink("#{@notes}.go")
    pid = run_manager(program)
    wait_for { count("begun") == 2 }
    kill(:TERM, pid)
    wait_for { count("trapped") == 2 }
    kill(:TERM, pid)
    assert reap(pid).success?
    assert_equal [1, %w[0 0]], [count("done"), words("left")]
  end

  def test_int_that_is_not_trapped_ends_the_workers_and_then_strikes
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 2)\nat_exit { note 'exit', $!.class }\n#{LOOP}")
    wait_for { count("up") == 2 }
    kill(:INT, pid)
    assert_equal 2, reap(pid).termsig
    assert_equal ["Interrupt"], words("exit")
    refute(lines("up").any? { |worker,| alive?(worker) })
  end

  def test_a_handler_of_the_program_stays_its_own
    pid = run_manager("trap(:HUP) { note 'own' }\npm = Oribi::Prefork.new(max_workers: 1)\n#{LOOP}")
    wait_for { count("up") == 1 }
    kill(:HUP, pid)
    wait_for { count("own") == 1 }
    stop(pid)
    assert_equal 1, count("up")
  end

  def test_a_stop_between_two_starts_is_not_forgotten
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, trap_signals: { "TERM" => "TERM", "HUP" => "TERM" })
      pm.start { |w| note "up", $$; w.wait }
      note "back", pm.signal_received
      sleep 0.01 until File.exist?(ENV["NOTES"] + ".go")
      pm.start { note "again" }
      note "back", pm.signal_received
      pm.wait_all_children
    RUBY
    wait_for { count("up") == 1 }
    kill(:HUP, pid)
    wait_for { count("back") == 1 }
    kill(:TERM, pid)
    File.write("#{@notes}.go", "")
    assert reap(pid).success?
    assert_equal [%w[HUP TERM], 0], [words("back"), count("again")]
  end

  def test_start_without_a_block_and_finish
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 600, on_child_reap: ->(_, pid, status) { note "reap", status })
      if pm.start.nil?
        note "child", pm.worker.index, pm.manager_pid != $$
        begin pm.start { } rescue note("nested", $!.message) end
        pm.finish(7)
      end
      begin pm.finish rescue note("manager", $!.message) end
      pm.wait_all_children
    RUBY
    wait_for { count("reap") == 1 }
    stop(pid)
    assert_equal [%w[0 true], [(7 << 8).to_s]], [words("child"), words("reap")]
    assert_equal [1, 1], [count("nested"), count("manager")]
  end

  def test_no_workers_at_all_for_debugging
    pid = run_manager("note 'said', Oribi::Prefork.new(max_workers: 0).start { note 'up' }.inspect, $$")
    assert reap(pid).success?
    assert_equal [["nil", pid.to_s], 0], [words("said"), count("up")]
  end

  def test_workers_leave_when_the_manager_is_killed
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 2)\npm.start { |w| note 'up', $$; w.index == 0 ? w.wait : sleep }")
    wait_for { count("up") == 2 }
    kill(:KILL, pid)
    reap(pid)
    wait_for { words("up").none? { |worker| alive?(worker) } }
  end

  def test_a_killed_worker_is_replaced
    reaped = "->(_, pid, status) { note 'reap', pid, status }"
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 0.1, on_child_reap: #{reaped})\n#{LOOP}")
    wait_for { count("up") == 1 }
    worker = words("up").first
    kill(:KILL, worker.to_i)
    wait_for { count("up") == 2 }
    stop(pid)
    assert_equal [worker, "9"], lines("reap").first
  end

  def test_jobs_max
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, jobs_max: 3)
      pm.start do |worker|
        until worker.stopping?
          worker.job { note "job", $$ }
        end
        note "down", $$
      end
      pm.wait_all_children
    RUBY
    wait_for { count("down") >= 2 }
    stop(pid)
    assert_equal [3], words("job").tally.values_at(*words("down").first(2)).uniq
  end

  def test_memory_max_looks_between_jobs
    skip "the portable build has no memory of other processes" if `#{RbConfig.ruby} -I#{LIBRARY} -roribi -e 'print Oribi::Core.layer'` == "portable"
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, memory_max: "60M")
      pm.start do |worker|
        note "up", $$
        until worker.stopping?
          worker.job { ($hoard ||= []) << ("x" * 20_000_000) unless $hoard && $hoard.size > 5 }
          worker.wait(0.02)
        end
        note "down", $$
      end
      pm.wait_all_children
    RUBY
    wait_for { count("down") >= 1 }
    stop(pid)
    assert_equal words("up").first, words("down").first
  end

  def test_age_max_waits_for_the_job_and_leaves_those_alone_that_never_ask
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 2, age_max: 1)
      pm.start do |worker|
        note "up", $$, worker.index, worker.generation
        sleep if worker.index == 1
        worker.job { sleep 0.01 until File.exist?(ENV["NOTES"] + ".go"); note "done", $$ }
        worker.wait
        note "down", $$
      end
      pm.wait_all_children
    RUBY
    wait_for { count("up") >= 3 } # each second one more
    old, quiet = lines("up").first(2).sort_by { |_, index| index }.map(&:first)
    assert_equal 0, count("done"), "its successor came while it was in a job"
    File.write("#{@notes}.go", "")
    wait_for { words("down").include?(old) }
    assert_includes words("done"), old
    assert alive?(quiet)
    stop(pid)
  end

  def test_user_and_group_are_those_of_the_workers
    skip "only root can become somebody else" unless Process.uid.zero?
    nobody = Etc.getpwnam("nobody")
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, user: "nobody", group: "#{Etc.getgrgid(nobody.gid).name}")
      note "manager", Process.uid
      pm.start { |worker| worker.stopping?; note "up", $$, Process.uid, Process.euid, Process.gid, Process.groups.include?(0); worker.wait; note "down" }
      pm.wait_all_children
    RUBY
    wait_for { count("up") == 1 }
    stop(pid)
    assert_equal [nobody.uid, nobody.uid, nobody.gid, false].map(&:to_s), words("up").drop(1)
    assert_equal [["0"], 1], [words("manager"), count("down")]

    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, user: 'nobody')\npm.start { note 'sleeps', $$; sleep }")
    wait_for { count("sleeps") == 1 }
    kill(:KILL, pid)
    reap(pid)
    wait_for { !alive?(words("sleeps").first) }
  end

  def test_a_service_manager_hears_what_is_going_on
    socket = Socket.new(:UNIX, :DGRAM)
    socket.bind(Addrinfo.unix("#{@dir}/notify"))
    told = +""
    hear = lambda do |text|
      wait_for do
        while (part = socket.recv_nonblock(4096, exception: false)) != :wait_readable do told << part << "\n" end
        told.include?(text)
      end
    end
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1)\n#{LOOP}", "NOTIFY_SOCKET" => "#{@dir}/notify")
    hear.("READY=1")
    wait_for { count("up") == 1 } # told as its code begins
    told.clear
    kill(:HUP, pid)
    hear.("RELOADING=1")
    hear.("READY=1")
    refute_includes told, "STOPPING=1"
    stop(pid)
    hear.("STOPPING=1")
  ensure
    socket.close
  end

  def test_start_in_a_thread
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 2, err_respawn_interval: 0.1)
      Thread.new do
        pm.start do |worker|
          note "up", $$, worker.index
          worker.index.zero? ? worker.wait : sleep
          note "down", $$
        end
        note "left", pm.wait_all_children
      end.join
      note "after", pm.signal_received
    RUBY
    wait_for { count("up") == 2 }
    kill(:KILL, words("up").first.to_i)
    wait_for { count("up") == 3 }
    stop(pid)
    assert_equal [["0"], ["TERM"]], [words("left"), words("after")]
    refute(lines("up").any? { |worker,| alive?(worker) })
  end

  def test_more_and_fewer_workers
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1)\n#{LOOP}")
    wait_for { count("up") == 1 }
    kill(:TTIN, pid)
    wait_for { count("up") == 2 }
    kill(:TTOU, pid)
    wait_for { count("down") == 1 }
    stop(pid)
  end

  def test_max_workers_can_be_changed_from_a_hook
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, after_fork: ->(m) { m.max_workers = 3 })\n#{LOOP}")
    wait_for { count("up") == 3 }
    stop(pid)
    assert_equal [%w[TERM 3]], lines("back")
  end

  def test_reload_starts_the_program_anew_and_replaces_its_workers
    program = File.join(@dir, "program.rb")
    write = lambda do |version|
      File.write(program, "#{PRELUDE}pm = Oribi::Prefork.new(max_workers: 2)\n#{LOOP.sub('note "up", $$', %(note "up", #{version}))}")
    end
    write.(1)
    pid = spawn_manager(program)
    wait_for { count("up") == 2 }
    write.(2)
    kill(:HUP, pid)
    wait_for { count("down") == 2 && count("up") == 4 }
    File.write(program, "raise 'broken'\n")
    kill(:HUP, pid)
    wait_for { log.include?("reload failed") }
    assert_equal 2, count("down")
    stop(pid)
    assert_equal %w[1 1 2 2], words("up").each_slice(3).map(&:first)
  end

  def test_workers_of_a_reloaded_generation_leave_with_the_manager
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1)\n#{LOOP}")
    wait_for { count("up") == 1 }
    kill(:HUP, pid)
    wait_for { count("up") == 2 && count("down") == 1 }
    kill(:KILL, pid)
    reap(pid)
    wait_for { count("down") == 2 }
    wait_for { marked.empty? }
  end

  def test_shutdown_timeout_ends_what_does_not_end
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, shutdown_timeout: 0.1, on_child_reap: ->(_, pid, status) { note 'reap', status })\n" \
                      "pm.start { |w| w.stopping?; note 'up', $$; sleep }\npm.wait_all_children")
    wait_for { count("up") == 1 }
    stop(pid)
    assert_equal ["9"], words("reap")
  end

  def test_pid_file_control_and_titles
    socket = File.join(@dir, "ctl")
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, program: 'eater', pid_file: '#{@dir}/pid', control: '#{socket}')\n" \
                      "#{LOOP.sub("worker.wait", "worker.job('carrots') { sleep 0.01 until File.exist?(ENV['NOTES'] + '.go') }\nworker.wait")}")
    wait_for { count("up") == 1 && File.exist?("#{@dir}/pid") }
    assert_equal pid.to_s, File.read("#{@dir}/pid").strip
    wait_for { ctl(socket, "status").match?(/busy .*carrots/) }
    assert_match(/\Aeater, pid #{pid}, serving, generation 1, 1 of 1 worker/, ctl(socket, "status"))
    File.write("#{@notes}.go", "")
    wait_for { told(words("up").first, "command").match?(/eater worker 0, generation 1, idle, 1 jobs/) }
    assert_match(/eater supervisor/, told(pid, "command"))
    ctl(socket, "stop")
    assert reap(pid).success?
    assert_equal [%w[TERM 1]], lines("back")
    refute File.exist?("#{@dir}/pid")
    refute File.exist?(socket)
  end

  def test_daemonize
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, daemonize: true, pid_file: '#{@dir}/pid')\n#{LOOP}")
    assert reap(pid).success?
    daemon = File.read("#{@dir}/pid").to_i
    refute_equal pid, daemon
    wait_for { count("up") == 1 }
    kill(:TERM, daemon)
    wait_for { count("left") == 1 && !alive?(daemon) }
  end

  def test_a_failed_fork_waits_and_is_tried_again
    pid = run_manager(<<~RUBY)
      fails = 2
      Oribi::Processes.singleton_class.prepend(Module.new do
        define_method(:fork_program) do |&block|
          note "fork", now
          (fails -= 1) >= 0 ? -Errno::EAGAIN::Errno : super(&block)
        end
      end)
      pm = Oribi::Prefork.new(max_workers: 1, err_respawn_interval: 0.2)
      #{LOOP}
    RUBY
    wait_for { count("up") == 1 }
    stop(pid)
    gaps = words("fork").map(&:to_f).each_cons(2).map { |a, b| b - a }
    assert_operator gaps[0], :>=, 0.19
    assert_operator gaps[1], :>=, 0.38
    assert_match(/cannot fork worker 0: .*unavailable/, log)
  end

  def test_usr1_reopens_the_log_unless_the_program_uses_it
    path = File.join(@dir, "errors")
    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, error_log: '#{path}')\npm.start do |w|\nnote 'up', $$\n" \
                      "until w.stopping?\n$stderr.puts 'here'; $stderr.flush; w.wait(0.01)\nend\nend\npm.wait_all_children")
    wait_for { count("up") == 1 && File.exist?(path) && File.size?(path) }
    File.rename(path, "#{path}.1")
    kill(:USR1, pid)
    wait_for { File.exist?(path) && File.read(path).include?("here") }
    stop(pid)

    pid = run_manager("pm = Oribi::Prefork.new(max_workers: 1, trap_signals: { 'TERM' => 'TERM', 'USR1' => 'USR1' })\n" \
                      "until pm.signal_received == 'TERM'\npm.start { |w| trap(:USR1) { note 'own' }; note 'up', $$; w.wait }\nend\npm.wait_all_children")
    wait_for { count("up") == 2 }
    kill(:USR1, pid)
    wait_for { count("own") == 1 }
    stop(pid)
  end

  def test_a_job_that_forks
    pid = run_manager(<<~RUBY)
      pm = Oribi::Prefork.new(max_workers: 1, jobs_max: 2)
      pm.start do |w|
        until w.stopping?
          w.job { note "job", $$; exit!(0) if (child = fork).nil? && sleep(0).zero?; Process.wait(child) }
        end
        note "down", $$
      end
      pm.wait_all_children
    RUBY
    wait_for { count("down") >= 1 }
    stop(pid)
    assert_equal 2, words("job").count(words("down").first)
  end

  def test_what_no_option_is_called_is_logged
    pid = run_manager("pm = Oribi::Prefork.new(fork_delay: 0, max_workers: 1)\nnote 'made', pm.max_workers")
    assert reap(pid).success?
    assert_equal ["made 1"], File.readlines(@notes, chomp: true)
    assert_match(/warn: Oribi::Prefork: no option is called fork_delay: it changes nothing/, File.read("#{@dir}/log"))
  end

  def test_mistakes_are_told
    { "max_worker: 3" => /unknown option max_worker: did you mean max_workers\?/, "idle_timeout: 3" => /idle_timeout is an option of the server/,
      "spawn_interval: 'soon'" => /spawn_interval/, "trap_signals: { 'KILL' => 'TERM' }" => /KILL|cannot be trapped/i,
      "trap_signals: { 'TERM' => 'NONE' }" => /no signal NONE/ }.each do |setting, message|
      pid = run_manager("begin\nOribi::Prefork.new(#{setting}).start { }\nrescue Oribi::Error, ArgumentError\nnote 'error', $!.message\nend")
      assert reap(pid).success?, setting
      assert_match(message, File.readlines(@notes).last, setting)
    end
  end

  private

  def run_manager(source, env = {})
    program = File.join(@dir, "manager.rb")
    File.write(program, PRELUDE + source)
    spawn_manager(program, env)
  end

  def spawn_manager(program, env = {})
    pid = with_default_signals do
      spawn({ "NOTES" => @notes, **env }, RbConfig.ruby, "-I#{LIBRARY}", program, out: "#{@dir}/log", err: [:child, :out], pgroup: true)
    end
    @pids << pid
    pid
  end

  # What was ignored when these tests were started (nohup, a shell's background) a manager would take for the program's
  # wish.
  def with_default_signals
    before = %w[INT HUP].to_h { |signal| [signal, trap(signal, "DEFAULT")] }
    yield
  ensure
    before&.each { |signal, handler| trap(signal, handler) }
  end

  # What each worker notes may be late, and never early.
  def assert_paced(seconds, began, times)
    assert_equal 3, times.size
    times.sort.each_with_index { |at, i| assert_operator at - began, :>=, seconds * i - 0.01, "#{began} #{times}" }
  end

  def stop(pid)
    kill(:TERM, pid)
    status = reap(pid)
    assert status.success?, "#{status.inspect}\n#{log}"
  end

  def reap(pid)
    status = Timeout.timeout(DEADLINE, nil, "process #{pid} does not end: #{log}") { Process.wait2(pid)[1] }
    @pids.delete(pid)
    status
  end

  def kill(signal, pid)
    Process.kill(signal, pid)
  rescue Errno::ESRCH
    nil
  end

  # What ps says of a process, on any system; "" when it is gone.
  def told(pid, column) = IO.popen(["ps", "-ww", "-o", "#{column}=", "-p", pid.to_s], &:read).strip

  def alive?(pid)
    state = File.exist?("/proc/self/stat") ? File.read("/proc/#{pid}/stat").split(") ").last[0] : told(pid, "stat")[0]
    !state.nil? && state != "Z"
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end

  def parent(pid) = told(pid, "ppid").to_i

  # Processes that know of our file of notes.
  def marked
    Dir["/proc/[0-9]*/environ"].select { |path| File.read(path).include?("NOTES=#{@notes}") rescue false }
                               .map { |path| path[/\d+/].to_i }.select { |pid| alive?(pid) }
  end

  def lines(first) = File.readlines(@notes, chomp: true).map(&:split).select { |words| words.first == first }.map { |words| words.drop(1) }
  def words(first) = lines(first).flatten
  def count(first) = lines(first).size
  def log = File.exist?("#{@dir}/log") ? File.read("#{@dir}/log") : ""

  def ctl(socket, command)
    IO.popen([RbConfig.ruby, "-I#{LIBRARY}", File.expand_path("../exe/oribi", __dir__), "ctl", "--control", socket, command, err: %i[child out]], &:read)
  end

  def wait_for(seconds = DEADLINE)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until yield
      flunk "in vain:\n#{File.read(@notes)}\n#{log}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      IO.select(nil, nil, nil, 0.01)
    end
  end
end

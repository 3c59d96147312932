# frozen_string_literal: true

# examples/queue-consumer in the language of the command: whatever happens to manager and workers, no job is lost.
require "fileutils"
require "minitest/autorun"
require "rbconfig"
require "timeout"
require "tmpdir"
require_relative "support/waiting"

class QueueConsumerTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  EXAMPLE = File.join(ROOT, "examples/queue-consumer")
  COMMAND = if ENV["E2E_COMMAND"] == "oribi-psgi"
              ["perl", "-I#{ROOT}/perl/blib/lib", "-I#{ROOT}/perl/blib/arch", "#{EXAMPLE}/consumer.pl"]
            else
              [RbConfig.ruby, "-I#{ROOT}/ruby/lib", "#{EXAMPLE}/consumer.rb"]
            end
  JOBS = 250
  DEADLINE = 60 * E2E.patience

  def setup
    @dir = Dir.mktmpdir
    @managers = []
    @groups = []
    FileUtils.mkdir_p("#{@dir}/new")
  end

  def teardown
    @managers.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    wait_for("workers to leave") { processes.empty? }
    FileUtils.rm_rf(@dir)
  end

  def test_reload_killed_worker_stop_and_start_lose_nothing
    add(0...50)
    pid = start
    wait_for("the first jobs") { done.size >= 10 }
    before = processes - ["/proc/#{pid}/stat"]
    Process.kill(:HUP, pid)
    wait_for("workers of the next generation alone") { (processes & before).empty? }
    add(50...150)
    Process.kill(:KILL, busy_worker)
    wait_for("more jobs") { done.size >= 60 }
    add(150...JOBS)
    Process.kill(:TERM, pid)
    assert finished(pid).success?, log
    assert_empty processes
    assert_operator left("new"), :>, 0, "stopped in the middle"
    assert_equal 0, left("work"), "what was begun was finished"
    assert_equal JOBS, left("new") + done.size
    pid = start
    wait_for("all jobs") { done.size == JOBS }
    Process.kill(:TERM, pid)
    assert finished(pid).success?, log
    assert_results(JOBS)
  end

  def test_killed_manager_and_killed_workers
    add(0...30)
    pid = start
    wait_for("the first jobs") { done.size >= 5 }
    Process.kill(:KILL, pid)
    finished(pid)
    wait_for("workers to finish and leave") { processes.empty? }
    assert_equal [0, 30], [left("work"), left("new") + done.size]

    pid = start
    wait_for("more jobs") { done.size >= 12 }
    2.times { Process.kill(:TERM, pid) } # at once: whatever is in work/ now stays there
    finished(pid)
    wait_for("the end") { processes.empty? }
    pid = start
    wait_for("all jobs") { done.size == 30 && left("work").zero? }
    Process.kill(:TERM, pid)
    assert finished(pid).success?, log
    assert_results(30)
  end

  private

  def start
    env = { "WORK_SECONDS" => "0.03" }
    ignored = trap("HUP", "DEFAULT") # by nohup: the manager would take it for the program's wish
    @managers << spawn(env, *COMMAND, @dir, out: "#{@dir}/log", err: %i[child out], pgroup: true)
    @groups << @managers.last
    @managers.last
  ensure
    trap("HUP", ignored)
  end

  def add(numbers)
    numbers.each do |i|
      File.write("#{@dir}/part", "text #{i}")
      File.rename("#{@dir}/part", format("%s/new/%03d", @dir, i))
    end
  end

  def assert_results(count)
    assert_equal (0...count).map { |i| [format("%03d", i), "TEXT #{i}"] }, done.sort.map { |name| [name, File.read("#{@dir}/done/#{name}")] }
    assert_equal [0, 0], [left("new"), left("work")]
  end

  # One with a job in its hands.
  def busy_worker
    name = nil
    wait_for("a busy worker") { name = Dir.children("#{@dir}/work").first }
    name.to_i
  end

  def done = Dir.exist?("#{@dir}/done") ? Dir.children("#{@dir}/done") : []
  def left(state) = Dir.children("#{@dir}/#{state}").size
  def log = File.read("#{@dir}/log")

  # Managers lead process groups of their own, in which their workers stay.
  def processes
    Dir["/proc/[0-9]*/stat"].select do |path|
      state, _parent, group = File.read(path).split(") ").last.split
      state != "Z" && @groups.include?(group.to_i)
    rescue SystemCallError # it ended meanwhile
      false
    end
  end

  def finished(pid)
    @managers.delete(pid)
    Timeout.timeout(DEADLINE) { Process.wait2(pid)[1] }
  end

  def wait_for(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
    until yield
      flunk "waited in vain for #{what}: #{log}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      IO.select(nil, nil, nil, 0.005)
    end
  end
end

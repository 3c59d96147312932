# frozen_string_literal: true

require "minitest/autorun"
require "socket"
require "tmpdir"
require_relative "../data"
require_relative "../tools"

# The driver against the perfect bank, whole and with one rule broken at a time: what is wrong must not pass.
class DriverTest < Minitest::Test
  USERS = 4_000
  START_SECONDS = 30
  IDLE_DESCRIPTORS = 5 # the standard three, the listener, the epoll

  def self.data
    @data ||= begin
      dir = Dir.mktmpdir("isucon4-driver")
      Minitest.after_run { FileUtils.rm_rf(dir) }
      Isucon4::Data.new(dir, users: USERS).generate
    end
  end

  def data = self.class.data
  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def with_bank(broken = nil)
    port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
    pid = spawn(Isucon4.perfect, port.to_s, data.users_path, data.public_dir, *broken, close_others: true)
    await(port)
    yield "127.0.0.1:#{port}", pid
  ensure
    if pid
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  def await(port)
    deadline = now + START_SECONDS
    begin
      TCPSocket.new("127.0.0.1", port).close
    rescue Errno::ECONNREFUSED
      raise "the bank did not open" if now > deadline

      IO.select(nil, nil, nil, 0.01)
      retry
    end
  end

  def await_descriptors(pid)
    deadline = now + START_SECONDS
    until yield(count = Dir.children("/proc/#{pid}/fd").size)
      flunk "the bank has #{count} descriptors" if now > deadline

      IO.select(nil, nil, nil, 0.005)
    end
  end

  def drive(address, workers: 4, seconds: 0.5, **options)
    Isucon4.drive("bank", address, workers: workers, seconds: seconds, data: data.users_path, **options)
  end

  # Against a bank of its own. The block says whether the run was long enough to be looked at: on a machine with other
  # work little happens in it, and a longer one follows.
  def against(broken = nil, seconds: 0.5, **options)
    result = nil
    [1, 2, 4, 8, 16].each do |times|
      result = with_bank(broken) { |address| drive(address, seconds: seconds * times, **options) }
      break if !block_given? || yield(result)
    end
    result
  end

  def test_a_bank_that_keeps_the_rules_passes
    result = against { |run| run[:logins] > 50 && run[:banned] + run[:locked] > USERS / 80 }
    assert_equal "", result[:reason]
    assert result[:valid]
    assert_equal 0, result[:error_count]
    assert_operator result[:logins], :>, 50
    assert_in_delta result[:logins] * 2, result[:score], 2 * 4, "two points a login"
    assert_operator result[:banned] + result[:locked], :>, USERS / 80, "somebody was locked in this run"
  end

  def test_assets_are_asked_for_and_give_points
    result = against(public: data.public_dir)
    assert result[:valid], result[:reason]
    assert_equal 0, result[:error_count]
    assert_operator result[:asset_requests], :>=, result[:logins] * 7
    assert_in_delta result[:logins] * 2.16, result[:score], 3 * 4
  end

  def test_every_number_of_workers
    [1, 2, 8].each do |workers|
      result = against(workers: workers)
      assert result[:valid], result[:reason]
      assert_equal 0, result[:error_count]
    end
  end

  def test_wrong_pages_give_errors
    { "notice" => :page, "last" => :page, "form" => :page }.each do |broken, kind|
      result = against(broken) { |run| run[:errors].key?(kind) }
      assert_operator result[:errors].fetch(kind, 0), :>, 0, broken
    end
  end

  def test_a_form_without_its_fields_gives_no_points
    assert_equal 0, against("form")[:score]
  end

  def test_a_wrong_byte_in_an_asset_is_an_error
    result = against("asset", public: data.public_dir) { |run| run[:errors].key?(:asset) }
    assert_operator result[:errors].fetch(:asset, 0), :>, 0
    assert_equal 0, result[:logins]
  end

  def test_a_bank_that_locks_nobody_is_not_valid
    result = against("lock") { |run| !run[:valid] && run[:error_count].positive? }
    refute result[:valid]
    assert_operator result[:error_count], :>, 0
  end

  def test_a_bank_that_bans_nobody_is_not_valid
    result = against("ban", seconds: 1) { |run| !run[:valid] && run[:error_count].positive? }
    assert_operator result[:error_count], :>, 0
    refute result[:valid]
  end

  def test_a_report_that_leaves_one_out_is_not_valid
    result = against("short") { |run| !run[:valid] }
    refute result[:valid]
    assert_match(/a locked user is not listed/, result[:reason])
  end

  def test_a_report_with_one_too_many_is_not_valid
    result = against("extra")
    refute result[:valid]
    assert_match(/listed as locked and is not: \S/, result[:reason])
  end

  def test_without_a_report_a_run_is_not_valid
    result = against("gone")
    refute result[:valid]
    assert_match(/report was not answered/, result[:reason])
  end

  def test_answers_cut_off_are_errors_and_the_report_stands
    result = against("drop") { |run| run[:errors].key?(:cut) }
    assert_operator result[:errors].fetch(:cut, 0), :>, 0
    assert result[:valid], result[:reason]
  end

  def test_nobody_there_is_an_error_and_no_hang
    port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
    result = drive("127.0.0.1:#{port}", seconds: 0.3)
    refute result[:valid]
    assert_operator result[:error_count], :>, 0
    assert_equal 0, result[:requests]
  end

  def test_the_open_loop_keeps_its_rate
    result = against(rate: 200, workers: 64, seconds: 1)
    assert result[:valid], result[:reason]
    assert_in_delta 200, result[:scenario_ms][:count], 60
    assert_equal 0, result[:never_begun]
  end

  # What was due while the server stood still waited, though the driver could not even begin it.
  def test_the_open_loop_counts_from_when_it_was_due
    with_bank do |address, pid|
      # Whoever asked whether it is there has gone again.
      await_descriptors(pid) { |count| count == IDLE_DESCRIPTORS }
      driving = Thread.new { drive(address, rate: 400, workers: 1, seconds: 1) }
      await_descriptors(pid) { |count| count > IDLE_DESCRIPTORS }
      Process.kill(:STOP, pid)
      IO.select(nil, nil, nil, 0.4)
      Process.kill(:CONT, pid)
      result = driving.value
      assert_operator result[:scenario_ms][:p90], :>, 100
    end
  end
end

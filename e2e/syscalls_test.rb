# frozen_string_literal: true

require_relative "support"
require_relative "support/tracing"

COUNTED_REQUESTS = 200

# What a kept-alive request costs in system calls. Counts hold on noisy machines where times do not.
E2E.suite("syscalls", options: ["--access-log", "off"]) do
  include E2E::Tracing

  # System calls while the block runs: { name => count }.
  def counting(&block) = traced(&block).filter_map { |line| name_of(line) }.tally

  def per_request(target)
    skip_without_strace
    client = connect
    10.times { client.get(target) }
    counts = counting { COUNTED_REQUESTS.times { client.get(target) } }
    assert_operator counts.values.sum, :<=, yield * COUNTED_REQUESTS + 20, counts.inspect
    assert_equal 0, counts.fetch("epoll_ctl", 0), counts.inspect
    counts
  end

  # Holds the worker still while the block runs.
  def stopped
    Process.kill(:STOP, worker)
    wait_until("the worker to stand still") { %w[T t].include?(E2E::Processes.stat(worker).first) }
    yield
  ensure
    Process.kill(:CONT, worker)
  end

  # read, writev, a share of epoll_wait: with one client there is one wait that finds nothing and one that blocks.
  def test_three_calls_a_request_when_requests_are_waiting
    skip_without_strace
    clients = Array.new(16) { connect }
    round = lambda do
      stopped { clients.each { |client| client.request("GET", "/") } }
      clients.each { |client| assert_equal "Hello, World!", client.read_response.body }
    end
    3.times { round.call }
    rounds = 20
    counts = counting { rounds.times { round.call } }
    requests = rounds * clients.size
    assert_operator counts.values.sum, :<=, 3 * requests, counts.inspect
    assert_equal 0, counts.fetch("epoll_ctl", 0), counts.inspect
    # A worker that stood still seems to have had a long call, so its helper thread may be woken, by a write to no client.
    assert_equal requests, %w[writev sendto sendmsg].sum { |name| counts.fetch(name, 0) }, counts.inspect
  end

  # A unix socket whose peer has read the answer says that it is writable again: one wake-up more.
  def test_few_calls_for_a_lone_client = per_request("/") { unix? ? 5 : 4 }
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/tracing"

COUNTED_REQUESTS = 200

# What a kept-alive request costs in system calls. Counts hold on noisy machines where times do not.
E2E.suite("syscalls", options: ["--access-log", "off"]) do
  include E2E::Tracing

  # What the worker's own thread asks of its helper when a call seems long, as any does that the machine has
  # interrupted: a word through the bell, a wait until the helper gives the connections back.
  const_set(:ASIDE, %w[write futex sched_yield restart_syscall].freeze)
  # Of the helper, and of what other threads the runtime has, for each such word: it looks a few dozen times before it
  # sleeps again.
  const_set(:LOOKS, 60)

  # Descriptors. A helper that takes over puts the listeners aside, and no connection.
  def registered(lines) = lines.filter_map { |line| line[/ epoll_ctl\(\d+, \w+, (\d+)/, 1] }
  def answered(lines) = lines.filter_map { |line| line[/ (?:writev|sendto|sendmsg)\((\d+)/, 1] }

  # System calls of the own thread while the block runs: { name => count }. That those of the others are few is asserted
  # here.
  def counting(words_max, &block)
    lines = traced(&block)
    own, others = lines.partition { |line| line[/\A\d+/].to_i == worker }.map { |list| list.filter_map { |line| name_of(line) }.tally }
    aside, path = own.partition { |name, _| self.class::ASIDE.include?(name) }.map(&:to_h)
    words = aside.values.sum
    assert_operator words, :<=, words_max, "#{own} #{others}"
    assert_operator others.values.sum, :<=, self.class::LOOKS * (1 + words), "#{own} #{others}"
    assert_empty registered(lines) & answered(lines), "epoll_ctl for a connection"
    path
  end

  def per_request(target)
    skip_without_strace
    client = connect
    10.times { client.get(target) }
    counts = counting(COUNTED_REQUESTS / 5) { COUNTED_REQUESTS.times { client.get(target) } }
    assert_operator counts.values.sum, :<=, yield * COUNTED_REQUESTS + 20, counts.inspect
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
    skip_without("readiness that costs no call for each request")
    skip_without_strace
    clients = Array.new(16) { connect }
    round = lambda do
      stopped { clients.each { |client| client.request("GET", "/") } }
      clients.each { |client| assert_equal "Hello, World!", client.read_response.body }
    end
    3.times { round.call }
    rounds = 20
    requests = rounds * clients.size
    counts = counting(requests / 5) { rounds.times { round.call } }
    assert_operator counts.values.sum, :<=, 3 * requests, counts.inspect
    assert_equal requests, %w[writev sendto sendmsg].sum { |name| counts.fetch(name, 0) }, counts.inspect
  end

  # Also over a unix socket, which would tell each time that the peer has read, were its room waited for.
  def test_few_calls_for_a_lone_client
    skip_without("readiness that costs no call for each request")
    per_request("/") { 4 }
  end

  # A long body is read in large pieces into memory, where the application reads it: no file is made, written or read.
  def test_an_upload_costs_reads_and_nothing_else
    skip_without_strace
    body = "x" * 10_485_760
    uploads = 3
    client = connect
    2.times { client.post("/unread", body) }
    counts = counting(uploads * 20) { uploads.times { assert_equal "ignored", client.post("/unread", body).body } }
    assert_empty counts.keys & %w[open openat lseek pread64 pwrite64 ftruncate write], counts.inspect
    waits, others = counts.partition { |name, _| name.include?("poll") }.map(&:to_h)
    assert_operator others.values.sum, :<=, 500 * uploads, counts.inspect
    assert_operator waits.values.sum, :<=, counts.fetch("read", 0) + (20 * uploads), counts.inspect # a slow client is waited for
  end

  # Ids come from the worker's own generator, the time of day from memory: no call more than with neither.
  def test_an_id_costs_no_call
    skip_without_strace
    one = start("--access-log", "off", "--request-id-header", "X-Request-Id", "--error-log-format", "json")
    client = connect(one)
    10.times { client.get("/") }
    fields = { "traceparent" => "00-#{"a" * 32}-#{"b" * 16}-01" }
    pid = one.worker_pid
    lines = traced(one, pid: pid) { COUNTED_REQUESTS.times { assert client.get("/", fields)["x-request-id"] } }
    own = lines.select { |line| line[/\A\d+/].to_i == pid } # and not the helper, which looks while calls seem long
    names = own.filter_map { |line| name_of(line) }.tally
    assert_equal 0, names.fetch("getrandom", 0)
    assert_operator names.values.sum, :<=, 5 * COUNTED_REQUESTS, names.inspect
  end
end

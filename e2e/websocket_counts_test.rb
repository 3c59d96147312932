# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require_relative "support/socket_client"
require_relative "support/tracing"

# The cost of a message of a WebSocket: system calls at either side, and objects in Ruby. Counts hold on noisy machines
# where times do not.
E2E.suite("websocket_counts", transports: %i[tcp]) do
  include FrontendServers
  include E2E::Tracing

  const_set(:SOCKETS, 16)
  const_set(:ROUNDS, 20)
  # Calls by which a thread asks another one: a call that the machine has interrupted seems long.
  const_set(:ASIDE, %w[write futex sched_yield restart_syscall].freeze)

  def begin_server
    serve_plain("websocket", "--access-log", "off")
    @sockets = Array.new(self.class::SOCKETS) { hold(E2E::SocketClient.new(@one.port, "/chat")) }
    3.times { round }
  end

  # A message of each socket, all of them there at once.
  def round
    Process.kill(:STOP, frontend)
    wait_until("the frontend to stand still") { %w[T t].include?(E2E::Processes.stat(frontend).first) }
    @sockets.each { |one| one.say("hello") }
    Process.kill(:CONT, frontend)
    @sockets.each { |one| assert_equal "hello", one.message }
  end

  # System calls of the process while all rounds run, those of other threads and for them left out.
  def counts_of(pid)
    own = traced(@one, pid: pid) { self.class::ROUNDS.times { round } }.select { |line| line[/\A\d+/].to_i == pid }
    own.filter_map { |line| name_of(line) }.tally.except(*self.class::ASIDE)
  end

  def messages = self.class::SOCKETS * self.class::ROUNDS

  # Of these calls there are more than there may be.
  def beyond(counts)
    most = { %w[read recvfrom recvmsg] => messages * 9 / 8, %w[sendto sendmsg writev] => messages * 12 / 8, %w[epoll_wait] => messages,
             %w[epoll_ctl] => messages / 8 }
    most.filter_map { |names, max| names if names.sum { |name| counts.fetch(name, 0) } > max }
  end

  # One read and one write; wake-ups and waits are shared by the messages of a turn. The frontend, slowed by the tracer,
  # hands now and then a request to the worker with a new channel. How many messages a turn has is up to the machine as
  # well; what the frontend does too often it does in each of three looks.
  def test_one_read_and_one_write_of_the_frontend_for_a_message
    skip_without_strace
    begin_server
    seen = []
    3.times do
      seen << counts_of(frontend)
      break if beyond(seen.last).empty?
    end
    assert_empty beyond(seen.last), seen.inspect
  end

  # The socket, its text, and what the handler makes.
  def test_objects_of_a_message
    return pass unless E2E::RUBY

    begin_server
    one = @sockets.first
    first = one.ask("objects").to_i
    100.times { one.ask("hello") }
    last = one.ask("objects").to_i
    assert_operator (last - first) / 101.0, :<=, 6.5
  end
end

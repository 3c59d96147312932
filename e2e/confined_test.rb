# frozen_string_literal: true

require_relative "support"
require_relative "support/tracing"

# What a worker asks of the kernel once it serves: everything it calls under mixed traffic is on this list, and what it
# opens are files for bodies and what the application itself opens. It makes no socket, connects to nobody, starts
# nothing, and changes no right, owner or name of a file. (In development the page of an error reads sources.)
E2E.suite("confined", options: ["--body-memory-max", "64K", "--env", "none"]) do
  include E2E::Tracing

  const_set(:WAITING, %w[epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll pselect6 select futex sched_yield restart_syscall].freeze)
  const_set(:TALKING, %w[accept4 read readv recvfrom recvmsg write writev sendto sendmsg sendfile shutdown close getsockname getpeername setsockopt].freeze)
  const_set(:FILES, %w[openat fcntl fstat newfstatat statx lseek pread64 pwrite64 ioctl].freeze)
  const_set(:MEMORY, %w[brk mmap munmap mprotect madvise mremap].freeze)
  # Signals, time and who we are: runtimes ask for them as they please. prctl names threads.
  const_set(:SELF, %w[rt_sigprocmask rt_sigaction rt_sigreturn sigaltstack getpid gettid getuid geteuid getgid getegid clock_gettime gettimeofday getrandom
                      sched_getaffinity timer_settime timer_gettime timerfd_settime getrusage prctl exit].freeze)
  const_set(:ALLOWED, [*self::WAITING, *self::TALKING, *self::FILES, *self::MEMORY, *self::SELF].freeze)
  # A thread is no process: the helper and the runtime's own may begin at any time.
  const_set(:THREAD, /CLONE_VM\b.*CLONE_THREAD/)
  const_set(:STARTING_A_THREAD, %w[clone clone3 set_robust_list rseq arch_prctl set_tid_address].freeze)

  def traffic
    client = connect
    client.get("/")
    client.head("/")
    assert_equal "small", client.post("/echo", "small").body
    client.request("POST", "/echo", { "Transfer-Encoding" => "chunked" }).send_raw("3\r\nabc\r\n0\r\n\r\n")
    assert_equal "abc", client.read_response.body
    body = "x" * 300_000
    assert_equal Digest::SHA256.hexdigest(body), client.post("/digest", body).body[/\h{64}/]
    client.request("POST", "/digest", { "Transfer-Encoding" => "chunked" }).send_raw("493e0\r\n#{body}\r\n0\r\n\r\n")
    assert_equal Digest::SHA256.hexdigest(body), client.read_response.body[/\h{64}/]
    %w[/file /handle /stream /parts?count=5 /big?size=1000000 /many?count=50 /cookies].each { |target| assert_equal 200, client.get(target).status }
    client.request("POST", "/echo", { "Expect" => "100-continue" }, "later")
    assert_equal "later", client.read_response.body
    3.times { client.request("GET", "/") }
    3.times { assert_equal 200, client.read_response.status }
    assert_equal 500, connect.get("/raise").status
    assert_equal 400, exchange("GET / HTTP/1.1\r\nHost: a\r\nBad Name: b\r\n\r\n").status
    assert_equal 413, exchange("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n").status
    [client, *Array.new(3) { connect }].each(&:close)
  end

  def allowed?(line)
    name = name_of(line) or return true # the rest of a call that was begun above, a signal, an exit
    return line.match?(self.class::THREAD) || !name.start_with?("clone") if self.class::STARTING_A_THREAD.include?(name)

    self.class::ALLOWED.include?(name)
  end

  # Files without a name, and what the application's own code opens for its answer.
  def opening?(line)
    return true unless line.match?(/\bopenat\(/)

    line.include?("O_TMPFILE") || line.include?(File.realpath(ENV.fetch("E2E_FILE", E2E::Server.numbers_file)))
  end

  def test_under_mixed_traffic_nothing_but_what_serving_needs_is_called
    skip_without "profile of system calls"
    skip_without_strace
    2.times { traffic } # what is loaded or made at first use is there
    lines = traced { 2.times { traffic } }
    assert_operator lines.size, :>, 100
    assert_equal [], lines.reject { |line| allowed?(line) }.first(5)
    assert_equal [], lines.reject { |line| opening?(line) }.first(5)
    assert_operator lines.grep(/O_TMPFILE/).size, :>=, 2, "the large bodies went to files"
  end
end

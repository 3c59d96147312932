# frozen_string_literal: true

require "monitor"

module E2E
  # Base of all suites: one server for the class, clients closed after each test, and two closing checks.
  class Case < Minitest::Test
    include Gates

    STARTING = Monitor.new

    class << self
      include Gates

      attr_reader :transport

      def setup_suite(transport:, options:, env:)
        @transport = transport
        @options = options
        @env = env
      end

      # Started by the first test that wants it. Descriptors are counted after a few requests have opened what stays
      # open.
      def server
        STARTING.synchronize do # threads of a test ask too, and all of them wait for the one start
          return @server if @server
          raise "the server did not start, as said before" if @start_failed

          @start_failed = true
          @server = start_server
          @start_failed = false
          @server
        end
      end

      attr_reader :worker, :descriptors

      def server? = !@server.nil?

      # The closing checks come last, in this order.
      def runnable_methods
        methods = super
        methods.empty? ? methods : methods + %w[check_worker_and_descriptors check_no_process_is_left]
      end

      # The whole suite: that is run_suite since minitest 6, where run is for one test.
      define_method(Minitest::Runnable.respond_to?(:run_suite) ? :run_suite : :run) do |reporter, options = {}|
        super(reporter, options)
      ensure
        @server&.cleanup
        @server = nil
      end

      private

      def connect(server) = server.connect

      # The first call that lasts makes the worker open what it needs to go on during calls.
      def long_call(server)
        client = enter_gate(server, "long")
        open_gate(server, "long")
        client.read_response
        server.get("/") # answered by a worker that has come back from the end of the long one
      ensure
        client&.close
      end

      # The warm-up connections go when the worker sees that we left: not at once.
      def settled_descriptors
        seen = []
        E2E.wait_until("descriptors to settle") do
          Processes.asleep?(@worker) ? seen << Processes.descriptors(@worker) : seen.clear
          seen.last if seen.size > 10 && seen.last(10).uniq.size == 1
        end
      end

      # What a client sends may take long on a busy machine.
      PATIENT = { "--head-timeout" => "10m", "--body-timeout" => "10m" }.freeze

      def patient_options = PATIENT.reject { |name, _| @options.include?(name) }.flatten

      def start_server
        server = Server.new(transport: @transport, options: [*patient_options, *@options], env: @env).start
        @worker = server.worker_pid
        3.times { server.get("/") }
        long_call(server)
        @descriptors = settled_descriptors
        server
      end
    end

    def server = self.class.server
    def worker = server && self.class.worker
    def transport = self.class.transport
    def unix? = transport == :unix
    def frontend? = transport == :frontend

    def setup
      @clients = []
      @servers = []
      skip "Oribi::Pure has no frontend" if frontend? && E2E::COMMAND == "pure"
      skip "no oribi-frontend here: it needs libssl-dev, libnghttp2-dev and pkg-config" if frontend? && !E2E.frontend?
    end

    def teardown
      @clients.each { |client| client.close unless client.socket.closed? }
      @servers.each { |one| assert_memory_given_back(one) }
    ensure
      @servers.each(&:cleanup)
    end

    def connect(to = server, **options)
      client = to.connect(**options)
      @clients << client
      client
    end

    # Its listeners are closed, or it has ended.
    def wait_until_refused(one)
      wait_until("newcomers to be refused") do
        one.connect.close
        false
      rescue Errno::ECONNREFUSED, Errno::ENOENT
        true
      end
    end

    # A server of the test's own.
    def start(*options, **more)
      one = Server.new(transport: transport, options: options, **more)
      @servers << one
      one.start
    end

    # For several addresses: listeners are opened one after another, and the first may accept before the next is there.
    # An answer comes when all are.
    def start_serving(...) = start(...).tap { |one| assert_alive(one) }

    def run_to_end(*options, **more)
      one = Server.new(transport: transport, options: options, **more)
      @servers << one
      one.run_to_end
    end

    # For cases about what the portable build does without, as doc/platforms.md says.
    def skip_without(what) = E2E.portable? && skip("the portable build has no #{what}")

    def wait_until(what, **options, &block) = E2E.wait_until(what, **options, &block)

    # Sends raw bytes on a new connection, reads one answer.
    def exchange(bytes, head: false) = connect.send_raw(bytes).read_response(head: head)

    # The answer to something refused: the status, a close, and not a byte more.
    def assert_refused(status, bytes, to: server)
      client = connect(to)
      client.send_raw(bytes)
      response = client.read_response
      assert_equal status, response.status, bytes[0, 200].inspect
      assert response.close?, "#{status} without Connection: close"
      assert client.closed?, "bytes after the #{status}"
      response
    end

    def assert_alive(to = server) = assert_equal("Hello, World!", to.get("/").body)

    # A worker counts the core's blocks of memory when it ends, and says so when there are more than at its start.
    def assert_memory_given_back(one)
      refute_match(/memory leak: /, one.stderr) if one.said?
    end

    # The process sleeps: no CPU time and no wake-up between two looks a while apart.
    def assert_idle(pid)
      before = nil
      wait_until("process #{pid} to sleep") do
        now = Processes.activity(pid)
        asleep = now == before
        before = now
        IO.select(nil, nil, nil, 0.2) unless asleep
        asleep
      end
      pass
    end

    # What wakes the thread that writes files, which is there from the first file on: an eventfd, or both ends of a
    # pipe; in the words of /proc or of lsof.
    def started(before)
      kind, count = E2E.portable? ? [/\A(pipe|->0x)/, 2] : [/\A(anon_inode:)?\[eventfd/, 1]
      there, then_there = [Processes.descriptors(worker), before].map { |all| all.values.grep(kind).size }
      (there - then_there).clamp(0, count)
    end

    # The class's server holds no more descriptors than when it had started.
    def descriptors_back?
      before = self.class.descriptors
      Processes.descriptors(worker).size <= before.size + started(before)
    end

    def check_worker_and_descriptors
      return pass unless self.class.server?

      assert_equal worker, server.worker_pid, "the worker was replaced: #{server.stderr}"
      return if transport == :frontend # whose channels stay open, more or fewer

      before = self.class.descriptors
      begin
        wait_until("descriptors to be back at #{before.size}") { descriptors_back? }
        pass
      rescue Timeout
        flunk "descriptors left over: #{Processes.descriptors(worker).reject { |fd, name| before[fd] == name }}"
      end
      assert_idle(worker)
    end

    def check_no_process_is_left
      return pass unless self.class.server?

      server.stop
      assert_empty server.left_behind, "processes left after TERM: #{server.stderr}"
      assert_equal 0, server.status.exitstatus, "exit code after TERM: #{server.stderr}"
      assert_memory_given_back(server)
      refute File.exist?(server.path), "socket file left" if unix?
    end
  end
end

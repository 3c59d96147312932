# frozen_string_literal: true

require_relative "workspace"

module E2E
  # A server with a status listener and a control socket, and what they answer. In a suite, behind InWorkspace.
  module WithStatus
    def setup
      super
      @status = "127.0.0.1:#{E2E.free_port}"
    end

    # Ready, and with its status listener: that is opened after those for requests.
    def serve(*options, **more)
      start("--status", @status, "--control", @space.control, *options, app: @space.app, **more).tap do
        wait_until("the server to be ready") { ready? }
      end
    end

    def ready?
      ask("/ready").status == 200
    rescue Errno::ECONNREFUSED
      false
    end

    def status_client(address = @status)
      Client.new(address.include?("/") ? address : address.split(":")).tap { |client| @clients << client }
    end

    def ask(path, fields = {})
      client = status_client
      client.get(path, fields)
    ensure
      client&.close
      @clients.delete(client)
    end

    # Name with labels => number.
    def metrics
      lines = ask("/metrics").body.lines(chomp: true).reject { |line| line.start_with?("#") }
      lines.to_h { |line| line.rpartition(" ").values_at(0, 2) }.transform_values(&:to_f)
    end

    def wait_for_metric(name, value) = wait_until("#{name} to be #{value}") { metrics[name] == value }

    def server_status = JSON.parse(ask("/status.json").body)
    def pids = server_status["processes"].map { |worker| worker["pid"] }

    # The exit code.
    def ctl(*words)
      one = Server.new(argv: [Server.binary, "ctl", "--control", @space.control, *words])
      @servers << one
      one.run_to_end
      one.status.exitstatus
    end
  end
end

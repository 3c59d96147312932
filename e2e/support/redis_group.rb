# frozen_string_literal: true

module E2E
  # A Redis master, its replica, and three Sentinels that watch them, in a folder of their own, on loopback. What the
  # tests ask them is read here, not by the client under test.
  class RedisGroup
    SENTINELS = 3

    attr_reader :sentinels, :dir

    def initialize
      @dir = Dir.mktmpdir("oribi-redis")
      @pids = {} # port => pid
      @servers = Array.new(2) { E2E.free_port }
      @sentinels = Array.new(SENTINELS) { E2E.free_port }
    end

    def start
      run_server(master)
      run_server(replica, "--replicaof", "127.0.0.1", master.to_s)
      wait_for_replica
      @sentinels.each { |port| run_sentinel(port) }
      E2E.wait_until("the Sentinels to know each other and the replica: #{log}") { @sentinels.all? { |port| knows_all?(port) } }
      self
    end

    # Ports. They change places when the Sentinels have chosen.
    def master = @servers.first
    def replica = @servers.last

    def addresses = @sentinels.map { |port| "127.0.0.1:#{port}" }

    def kill_master
      Process.kill(:KILL, @pids.fetch(master))
      Process.wait(@pids.delete(master))
    end

    # Asks for another master, and returns when the old one knows that it is none.
    def depose_master
      E2E.wait_until("a Sentinel to begin") { ask(@sentinels.first, "SENTINEL", "FAILOVER", "main") == "OK" }
      E2E.wait_until("the master to be a replica: #{log}") { ask(master, "ROLE").first == "slave" }
    end

    # Returns when all Sentinels name the other server, and it is the master.
    def wait_for_the_other
      E2E.wait_until("the other master: #{log}", seconds: 60) do
        @sentinels.all? { |port| ask(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main") == ["127.0.0.1", replica.to_s] } &&
          ask(replica, "ROLE").first == "master"
      end
      @servers.rotate!
    end

    # Starts what was killed, which the Sentinels make a replica.
    def wait_for_replica
      run_server(replica) unless @pids.key?(replica)
      E2E.wait_until("the replica to follow: #{log}", seconds: 60) { ask(replica, "ROLE").values_at(0, 2, 3) == ["slave", master, "connected"] }
    end

    # One command on a connection of its own: String, Integer, Array or nil; an error as a Symbol.
    def ask(port, *words)
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write("*#{words.size}\r\n", *words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" })
        reply(socket)
      end
    end

    def log = @pids.keys.map { |port| File.read("#{@dir}/#{port}.log").lines.last(3) }.flatten.join

    def stop
      @pids.each_value do |pid|
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
      FileUtils.remove_entry(@dir)
    end

    private

    def reply(socket)
      line = socket.gets&.chomp or return :ended
      rest = line[1..]
      case line[0]
      when "+" then rest
      when "-" then rest.to_sym
      when ":" then rest.to_i
      when "$" then rest == "-1" ? nil : socket.read(rest.to_i).tap { socket.read(2) }
      when "*" then rest == "-1" ? nil : Array.new(rest.to_i) { reply(socket) }
      end
    end

    def run_server(port, *options)
      run(port, "--bind", "127.0.0.1", "--port", port.to_s, "--save", "", "--repl-diskless-sync-delay", "0", "--dir", @dir, *options)
    end

    def run_sentinel(port)
      File.write("#{@dir}/#{port}.conf", <<~TEXT)
        bind 127.0.0.1
        port #{port}
        dir #{@dir}
        sentinel monitor main 127.0.0.1 #{master} 2
        sentinel down-after-milliseconds main 300
        sentinel failover-timeout main 2000
      TEXT
      run(port, "#{@dir}/#{port}.conf", "--sentinel")
    end

    def run(port, *arguments)
      @pids[port] = spawn("redis-server", *arguments, in: File::NULL, %i[out err] => "#{@dir}/#{port}.log")
      E2E.wait_until("port #{port}: #{log}") do
        ask(port, "PING") == "PONG"
      rescue SystemCallError
        false
      end
    end

    def knows_all?(port)
      facts = ask(port, "SENTINEL", "MASTER", "main").each_slice(2).to_h
      facts.values_at("num-slaves", "num-other-sentinels", "flags") == ["1", (SENTINELS - 1).to_s, "master"]
    end
  end
end

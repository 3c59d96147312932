# frozen_string_literal: true

require "etc"
require "fileutils"
require "tmpdir"
require_relative "running"

module Bench
  # What every workload of a run shares: the peers wanted, the cores, scratch folders, the log, and the progress line.
  class Context
    attr_reader :peers, :rounds_min, :server_core, :client_core, :log

    # peers: those wanted and installed. progress: a callable of one line of text. cores: those this process may use.
    def initialize(peers:, quick:, rounds_min:, progress: ->(_) {}, log: File.open(File::NULL, "w"), cores: Context.usable_cores)
      @peers = peers
      @quick = quick
      @rounds_min = rounds_min
      @progress = progress
      @log = log
      @server_core, @client_core = cores if cores.size >= 2
      @dir = Dir.mktmpdir("oribi-bench")
      # Servers started by root may drop to another user, and must reach their files.
      File.chmod(0o755, @dir)
    end

    def self.usable_cores
      File.read("/proc/self/status")[/^Cpus_allowed_list:\s+(\S+)/, 1].split(",").flat_map do |part|
        first, last = part.split("-").map(&:to_i)
        [*first..(last || first)]
      end
    end

    def quick? = @quick
    def progress(text) = @progress.call(text)

    # With one core only, nothing is pinned, and every result says so.
    def pinned? = !server_core.nil?
    def on_server_core(argv) = pin(server_core, argv)
    def on_client_core(argv) = pin(client_core, argv)

    # A new empty folder, gone with the run.
    def scratch(name)
      @scratch_count = @scratch_count.to_i + 1
      File.join(@dir, "#{@scratch_count}-#{name.tr("/", "-")}").tap { |path| Dir.mkdir(path, 0o755) }
    end

    def started(running) = running_servers << running
    def stopped(running) = running_servers.delete(running)

    # The block asks `running`, and no other server works meanwhile: some do though nobody asks them, and take the core
    # from the one that is measured.
    def turn(running)
      running_servers.each { |one| one.hush unless one.equal?(running) }
      running.wake
      yield
    ensure
      running.rest if running.alive?
    end

    # A server that stays for the workloads that want the same one; stop_servers ends them all.
    def server(peer, **site)
      running = servers[[peer.key, site]]
      return running.tap(&:wake) if running&.alive?

      servers[[peer.key, site]] = Running.new(peer, self, **site).start
    end

    def drop(running)
      servers.delete_if { |_, one| one.equal?(running) }
      running.stop
    end

    # except: a site that goes on. Applications are not compared: some servers have one of their own for the same
    # workload.
    def stop_servers(except: nil)
      same = ->(site) { except && site.except(:app) == except.except(:app) }
      servers.reject { |(_, site), _| same.call(site) }.each_value { |running| drop(running) }
    end

    def close
      stop_servers
      FileUtils.rm_rf(@dir)
    end

    private

    def servers = @servers ||= {}
    def running_servers = @running_servers ||= []

    def pin(core, argv) = core ? ["taskset", "-c", core.to_s, *argv] : argv
  end
end

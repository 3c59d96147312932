# frozen_string_literal: true

require "fiddle"

module E2E
  # Machines of a test's own: a network namespace each, at a bridge that nobody outside sees (network_namespaces(7),
  # veth(4), bridge(8)). The test's process is in a namespace of its own, where the bridge is.
  module Namespaces
    NEWNET = 0x40000000 # unshare(2)
    BRIDGE = "10.77.0.1"

    # Why there are none here; nil when there are. The first call takes this process to its namespace, which ends with
    # it.
    def self.refused
      return @refused if defined?(@refused)

      @refused = enter
    end

    def self.enter
      return "no ip(8) here" unless system("ip", "-V", out: File::NULL, err: File::NULL)

      unshare = Fiddle::Function.new(Fiddle.dlopen(nil)["unshare"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT)
      return "no network namespaces for this user" unless unshare.call(NEWNET).zero?

      [%w[link set lo up], %w[link add fleet type bridge], ["addr", "add", "#{BRIDGE}/24", "dev", "fleet"], %w[link set fleet up]]
        .map { |words| ip(*words) }.find { |output| output != "" }
    rescue Fiddle::DLError => e
      e.message
    end
    private_class_method :enter

    # What it said; "" when all is well.
    def self.ip(*words) = IO.popen(["ip", *words, { err: %i[child out] }], &:read)

    # A machine with an address at the bridge.
    class Machine
      ALL = [] # that are there
      Minitest.after_run { ALL.dup.each(&:remove) }

      attr_reader :address

      def initialize(name, address)
        @name = "oribi-#{$PID}-#{name}"
        @address = address
        @ours = "v#{name}"
        [["netns", "add", @name], ["link", "add", @ours, "type", "veth", "peer", "name", "eth0", "netns", @name],
         ["link", "set", @ours, "master", "fleet"], ["link", "set", @ours, "up"],
         ["-n", @name, "addr", "add", "#{address}/24", "dev", "eth0"], ["-n", @name, "link", "set", "lo", "up"],
         ["-n", @name, "link", "set", "eth0", "up"]].each do |words|
          output = Namespaces.ip(*words)
          raise "ip #{words.join(" ")}: #{output}" if output != ""
        end
        ALL << self
      end

      # The beginning of a command line that is run there.
      def words = ["ip", "netns", "exec", @name]

      def pids = Namespaces.ip("netns", "pids", @name).split.map(&:to_i)

      # The cable is pulled or plugged in.
      def cable(state) = Namespaces.ip("link", "set", @ours, state.to_s)

      def remove
        pids.each { |pid| Processes.kill(pid) }
        E2E.wait_until("the machine's processes to end") { pids.none? { |pid| Processes.alive?(pid) } }
        Namespaces.ip("link", "del", @ours)
        Namespaces.ip("netns", "del", @name)
        ALL.delete(self)
      end
    end
  end
end

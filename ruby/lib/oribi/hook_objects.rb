# frozen_string_literal: true

require "logger"

module Oribi
  # What hooks of Unicorn and Pitchfork are called with: a server and a worker, with the methods that configuration
  # files of theirs use. A hook asks for them: `after_fork objects: true do |server, worker|`.
  module HookObjects
    # The server as a hook sees it.
    class Server
      METHODS = %i[logger pid config worker_processes].freeze

      def initialize(options) = @options = options

      # @return [Logger] to standard error, which is where error_log goes
      def logger = @logger ||= Logger.new($stderr)

      # @return [String, nil] the path of the pid file, as in Unicorn
      def pid = text("pid_file")

      # @return [Hash] :pid, :timeout (in seconds) and :worker_processes are there
      def config = { pid: pid, timeout: Rational(text("call_timeout").to_s[/\A\d+/] || 0).to_i, worker_processes: worker_processes }

      # @return [Integer] 0: one for each CPU
      def worker_processes = text("workers").to_i

      private

      def text(name) = @options[name].then { |value| value.empty? ? nil : value }
    end

    # A worker as a hook sees it: its index is known in every hook that concerns a worker, its pid from the fork on.
    Worker = Struct.new(:nr, :pid) do
      alias_method :index, :nr
    end

    # How a worker ended, with the methods of Process::Status that hooks use.
    Status = Struct.new(:pid, :to_i) do
      def signaled? = !termsig.zero?
      def termsig = to_i & 0x7f
      def exitstatus = signaled? ? nil : to_i >> 8
      def success? = signaled? ? nil : exitstatus.zero?
    end

    # Of a hook that expects them, the hook as Oribi calls it.
    #
    # @raise [Error]
    def self.around(name, hook, options)
      raise Error, "#{name} needs a block" unless hook.respond_to?(:call)

      server = Server.new(options)
      lambda do |*values|
        hook.call(*fitting(hook, objects(name, server, values)))
      end
    end

    def self.objects(name, server, values)
      case name
      when :on_worker_exit
        pid, status, _reason, index = values
        [server, Worker.new(index, pid), Status.new(pid, status)]
      when :server_ready, :before_reload then [server]
      else [server, Worker.new(values.first, name == :before_fork ? nil : Process.pid)]
      end
    end

    def self.fitting(hook, values) = hook.respond_to?(:arity) && hook.arity >= 0 ? values.first(hook.arity) : values
    private_class_method :objects, :fitting
  end
end

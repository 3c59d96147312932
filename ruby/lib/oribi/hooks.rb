# frozen_string_literal: true

module Oribi
  # Blocks of the config file that run around the life of processes.
  #
  #   server_ready                              supervisor, once it serves
  #   before_reload                             supervisor, before a new generation is loaded
  #   on_worker_exit { |pid, status, reason, index| }  supervisor; status is a Process::Status value as an Integer
  #   before_fork { |index| }                   mold, before each worker; close what must not be shared
  #   after_fork { |index| }                    worker, before it serves; open what was closed
  #   after_worker_ready { |index| }            worker, once it serves
  #   before_refork { |index| }                 worker, before a mold is forked off it: end threads, close sockets
  #   before_worker_exit { |index| }            worker, after its last answer
  #
  # at_exit blocks of the file are kept here as well: for the end of a process that has been the server.
  class Hooks
    # With what they are called.
    ARGUMENTS = {
      server_ready: [], before_reload: [], on_worker_exit: %w[pid status reason index], before_fork: %w[index], after_fork: %w[index],
      after_worker_ready: %w[index], before_refork: %w[index], before_worker_exit: %w[index]
    }.freeze
    NAMES = ARGUMENTS.keys.freeze

    # A block that wants more than there is comes from another server, whose objects it would call: better said when the
    # file is read than by each worker.
    #
    # @raise [Error]
    def self.check(name, block)
      return unless block.respond_to?(:parameters)

      kinds = block.respond_to?(:lambda?) && !block.lambda? ? %i[req opt] : %i[req]
      wanted = block.parameters.count { |kind, _| kinds.include?(kind) }
      given = ARGUMENTS.fetch(name)
      return if wanted <= given.size

      raise Error, "#{name} is called with #{given.empty? ? "no arguments" : given.join(", ")}; this block wants #{wanted}, as other servers give" \
                   "#{"; #{name} objects: true calls it with a server and a worker" if wanted == 2}"
    end

    def initialize = @blocks = Hash.new { |blocks, name| blocks[name] = [] }

    # Several blocks of one name run in the order in which they were added.
    #
    # @param block [#call]
    def add(name, block)
      raise Error, "#{name} needs a block" unless block.respond_to?(:call)

      @blocks[name] << block
      self
    end

    # Runs the blocks of a name; what they raise goes to the caller.
    def run!(name, *arguments)
      @blocks[name].each { |block| block.call(*fitting(block, arguments)) } if @blocks.key?(name)
    end

    # Runs the blocks of a name; what they raise is logged, nothing more.
    def run(name, *arguments)
      run!(name, *arguments)
    rescue StandardError, ScriptError => e
      Failure.log(e, nil, "hook #{name} died")
    end

    # From now on this process is the server. A child inherits the blocks and does not run them; after an upgrade the
    # successor's count.
    #
    # @yieldreturn [Boolean] a successor has taken over
    def serve_until_exit(&replaced)
      server = Process.pid
      @blocks[:at_exit].each { |block| Kernel.at_exit { block.call if Process.pid == server && !replaced.call } }
    end

    private

    # Lambdas and methods may take fewer arguments than there are.
    def fitting(block, arguments)
      block.respond_to?(:arity) && block.arity >= 0 ? arguments.first(block.arity) : arguments
    end
  end
end

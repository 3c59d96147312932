# frozen_string_literal: true

module Oribi
  # Whether a developer has stopped a call and looks around in it: then its deadline does not matter.
  module Debugger
    # Where threads stand that wait at a prompt, or that run what was typed there.
    PROMPT = %r{/irb(?:/|\.rb:)|/pry/(?:repl|pry_instance|pry_class)\.rb:|/byebug/(?:processors|context)|/debug/thread_client\.rb:\d+:in .*wait_next_action}

    module_function

    # Called in a trap.
    #
    # @param thread [Thread] of a call over its deadline
    def prompts?(thread) = thread.backtrace&.any?(PROMPT) || false
  end
end

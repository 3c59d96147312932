# frozen_string_literal: true

module Oribi
  class Prefork
    # What a manager was told: options of the core, which checks them, and what only Ruby can hold.
    class Settings
      KNOWN = %i[max_workers spawn_interval err_respawn_interval trap_signals].freeze
      OWN_SIGNALS = %w[TERM QUIT INT HUP USR1 TTIN TTOU].freeze
      DEFAULT_ACTIONS = ["DEFAULT", "SYSTEM_DEFAULT", nil].freeze

      attr_reader :options, :given, :program, :titles

      def initialize
        @options = Options.new.prefork_defaults
        @given = { max_workers: 10, spawn_interval: 0, err_respawn_interval: 1, trap_signals: { "TERM" => "TERM" } }
        @program = File.basename($PROGRAM_NAME)
        @titles = true
      end

      # @param name [Symbol]
      # @raise [Oribi::Error] for an unknown name or a bad value
      def set(name, value)
        case name
        when :program then @program = value.to_s
        when :titles then @titles = value
        when :trap_signals then @given[name] = value
        else set_option(name, value) unless value.nil?
        end
      end

      # After this the options are whole.
      def finish
        @options.finish unless @finished
        @finished = true
      end

      # [[signal, what the workers get, seconds between two of them]]
      def traps
        @given[:trap_signals].map do |signal, action|
          send, interval = *action
          trap(signal.to_s, "DEFAULT") # what workers are to begin with
          [signal.to_s, send&.to_s, interval || 0]
        end
      rescue ArgumentError, SystemCallError => e
        raise Error, "trap_signals: #{e.message}"
      end

      # Signals of ours that the program has handlers for. They can only be asked for by being set.
      def left
        OWN_SIGNALS.reject do |signal|
          before = trap(signal, "DEFAULT")
          trap(signal, before) unless DEFAULT_ACTIONS.include?(before)
          DEFAULT_ACTIONS.include?(before)
        end
      end

      private

      def set_option(name, value)
        @given[name] = value if @given.key?(name)
        return if name == :max_workers && value == 0 # would mean: as many as there are CPUs

        @options.prefork_set(name.to_s, text(value)) and return
        Oribi.log(:warn, "Oribi::Prefork: no option is called #{name}: it changes nothing") # prefork_engine says nothing
      end

      def text(value)
        case value
        when Range then "#{value.begin}..#{value.max}"
        when true then "on"
        when false then "off"
        else value.to_s
        end
      end
    end
  end
end

# frozen_string_literal: true

require "oribi"
require_relative "app_loader"
require_relative "config"
require_relative "launcher"
require_relative "relaunch"
require_relative "supervisor"

module Oribi
  # What rackup and `rails server` start: `rackup -s Oribi -O Workers=4`.
  #
  # rackup logs requests itself, so the access log is off here unless it is asked for.
  module Handler
    # Options of rackup and of Rails that they act on themselves.
    THEIRS = %i[
      AccessLog app builder caching config daemonize debug DoNotReverseLookup heapfile include log_stdout log_to_stdout options pid
      profile_file profile_mode require restart_cmd server user_supplied_options using warn
    ].freeze

    HOOKS = { BeforeFork: :before_fork, AfterFork: :after_fork }.freeze

    class << self
      # What `rails server` says that it boots, and Sinatra that it has backup from.
      def to_s = "Oribi"
      alias name to_s

      # Serves until told to stop; then ends the process unless all went well.
      #
      # @param app [#call]
      # @param settings [Hash] names in any spelling, such as Port:, MaxWorkers:, idle_timeout:
      # @yield [Supervisor] before it starts
      def run(app, settings = {}, **more)
        settings = settings.merge(more)
        relaunch = Relaunch.new(settings.transform_keys(&:to_sym))
        relaunch.claim(mold: Core::Process.next_mold?)
        supervisor = supervisor_for(app, settings, relaunch)
        yield supervisor if block_given?
        code = supervisor.run
        exit(code) unless code.zero?
        Core.give_signals_back
      rescue Error => e
        exit(1) if Core.start_failed(e.message.delete("\0"))
        abort Failure.lines_of(e).join("\n")
      ensure
        relaunch&.finish
      end

      # For `rackup -s Oribi --help`.
      #
      # @return [Hash{String => String}]
      def valid_options
        entries = Options.table.reject { |option| option[:command] && option[:name] != "config" }
        entries.to_h do |option|
          name = option[:name].split("_").map(&:capitalize).join
          ["#{name}=#{option[:argument] || "on|off"}", describe(option)]
        end
      end

      private

      def supervisor_for(app, settings, relaunch)
        hooks = Hooks.new.add(:server_ready, -> { relaunch.serving }).add(:after_fork, -> { relaunch.disown })
        options = Options.new.set("access_log", "off", source: :launcher)
        apply(options, hooks, settings.transform_keys(&:to_sym))
        options.enter_dir
        Config.load(options, hooks)
        Supervisor.new(options.finish, AppLoader.given(app), hooks, command: relaunch.command)
      end

      def apply(options, hooks, settings)
        launcher = Launcher.new(settings)
        framework_env = launcher.framework_env
        options.set("env", framework_env, source: :environment) if framework_env
        settings.each do |name, value|
          next if THEIRS.include?(name) || (framework_env && name == :Host && launcher.source(:Host) == :launcher)
          next hooks.add(HOOKS[name], value) if HOOKS.key?(name) && value

          options.set(name, value, source: launcher.source(name)) unless HOOKS.key?(name)
        end
      end

      def describe(option)
        default = option[:note] || option[:default]
        default ? "#{option[:help]} (default: #{default})" : option[:help]
      end
    end
  end
end

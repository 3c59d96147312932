# frozen_string_literal: true

module Oribi
  # Where the Gemfile of a Rails application names this gem, plain `rails server` starts Oribi. Rails asks the handlers
  # for their default when `-u` names none, and both variables have a say there before any server's name has. Other
  # commands of Rails are left alone.
  class Railtie < ::Rails::Railtie
    VARIABLES = %w[RACKUP_HANDLER RACK_HANDLER].freeze

    # @param env [Hash] of the process
    def self.take_rails_server(env)
      env[VARIABLES.first] = env[VARIABLES.last] = "oribi" if VARIABLES.none? { |name| env.key?(name) }
    end

    take_rails_server(ENV) if defined?(::Rails::Server)
  end
end

# frozen_string_literal: true

require "rails/generators/base"

module Oribi
  module Generators
    # `rails generate oribi:install`: what `oribi init` does, in the folder of the application.
    class InstallGenerator < ::Rails::Generators::Base
      desc "Makes config/oribi.rb, bin/oribi and a line of Procfile.dev; tells what is left to be done."

      # So that a script sees that it failed.
      def self.exit_on_failure? = true

      def files
        flags = %w[pretend force].select { |name| options[name.to_sym] }.map { |name| "--#{name}" }
        text, failure = ::Oribi::Options.init_files([*flags, destination_root])
        say(text) unless options[:quiet]
        raise Thor::Error, "oribi: #{failure}" if failure
      end
    end
  end
end

# frozen_string_literal: true

module Oribi
  # What the operator of a Rails application may want to know of the files that it sends.
  module RailsAdvice
    CACHE = "public, max-age=31536000, immutable" # their names change with their contents
    FOLDERS = %w[assets vite].freeze

    module_function

    # Suggests words for the configuration file where compiled assets are there and nothing sends them but Rails or a
    # proxy. For the supervisor, at its start.
    def log_suggestion(options)
      lines = suggestion(options)
      Oribi.log(:info, "this Rails application's assets can be sent without it; in #{Config::DEFAULT}: #{lines.join("; ")}") if lines.any?
    end

    # @return [Array<String>]
    def suggestion(options)
      return [] unless options["static"].empty? && options["env"] == "production" && rails?

      FOLDERS.map { |name| [name, "public/#{name}"] }.select { |_, folder| File.directory?(folder) }.map do |name, folder|
        # In development the folder is missing, which would be refused.
        %(static "/#{name}", "#{folder}", cache: "#{CACHE}" if File.directory?("#{folder}"))
      end
    end

    # For --check, when the application is loaded.
    #
    # @return [String, nil] what is to be said of the option `health`
    def of_health(options)
      path = options["health"].to_s
      return if path.empty? || !defined?(::Rails.application.routes)

      route = ::Rails.application.routes.recognize_path(path)
      "health #{path.dump} stands before the application's own route #{path} (#{route[:controller]}##{route[:action]})"
    rescue ::ActionController::RoutingError
      nil
    end

    # Without loading it: that is a mold's work.
    def rails?
      defined?(::Rails::Application) || File.read("config/application.rb").include?("Rails::Application")
    rescue SystemCallError
      false
    end
  end
end

# frozen_string_literal: true

require "rack"
require "rack/builder"

module Oribi
  # Loads a Rack application: a rackup file, or a Ruby file that defines a constant of its name. Nothing is wrapped
  # around it.
  class AppLoader
    DEFAULT = "config.ru"
    HINT = "; start oribi in the folder of the application, or name its file: oribi PATH/#{DEFAULT}"

    NO_APPLICATION = "is no rackup file (its name would end in .ru) and no Ruby file (.rb)"
    OTHERS = { ".psgi" => "is a PSGI application: oribi-psgi serves those" }.freeze

    # An application that is there already, as rackup gives it.
    def self.given(app) = new(nil, app: app)

    def initialize(options, app: nil)
      @options = options
      @app = app
    end

    # @return [#call]
    # @raise [Exception] whatever the application raises
    def load
      @app ||= check(build)
    end

    # @return [String, nil] nil for a given application
    def path = @options && (@options.app || DEFAULT)

    # Tells the operator of a wrong name before anything is started.
    #
    # @raise [Error]
    def find
      raise Error, "#{path}: no such file#{HINT unless @options.app}" unless File.exist?(path)
      raise Error, "#{path}: is a directory" if File.directory?(path)
      raise Error, "#{path}: not readable" unless File.readable?(path)
      raise Error, "#{path}: #{OTHERS.fetch(File.extname(path), NO_APPLICATION)}" unless %w[.ru .rb].include?(File.extname(path))

      self
    end

    private

    def build
      find
      prepare
      evaluate(File.expand_path(path))
    rescue NameError => e
      reason = path.end_with?(".rb") && misread(e)
      raise unless reason

      raise Error, "#{path}: #{reason}"
    end

    # Ruby's source is UTF-8 in every locale, but Rack reads rackup files in that of the process: in the locale C,
    # letters beyond ASCII would be no characters. Rack 2 gives [app, options].
    def evaluate(full_path)
      text = File.read(full_path, mode: "r:bom|utf-8") if path.end_with?(".ru") && Encoding.default_external != Encoding::UTF_8
      return Array(Rack::Builder.parse_file(full_path)).first if text.nil? || text.ascii_only?

      Array(Rack::Builder.new_from_string(text.sub(/^__END__\n.*\z/m, ""), full_path)).first
    end

    # Why a Ruby file that is there is no application, or nil: its code has a mistake of its own.
    def misread(error)
      return "is a configuration file: give it with -C" if error.receiver.equal?(TOPLEVEL_BINDING.receiver) && Options.find(error.name.to_s)

      "defines no constant #{error.name}, which is to be the application; or it should be a rackup file, whose name ends in .ru" if
        error.receiver.equal?(Object) && error.backtrace_locations&.none? { |place| place.path == File.expand_path(path) }
    rescue ArgumentError # an error without a receiver
      nil
    end

    def prepare
      ENV["RACK_ENV"] = @options["env"]
      @options.include.reverse_each { |dir| $LOAD_PATH.unshift(File.expand_path(dir)) }
      @options.require.each { |name| Kernel.require(name) }
    end

    def check(app)
      app.respond_to?(:call) ? app : raise(Error, "#{path}: #{app.class} is no Rack application, it has no method call")
    end
  end
end

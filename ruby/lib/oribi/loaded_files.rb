# frozen_string_literal: true

module Oribi
  # The files that an application was loaded from, which the supervisor watches in development. Gems, Ruby's own library
  # and this server do not count, nor what Rails reloads by itself.
  class LoadedFiles
    LIBRARIES = [*Gem.path, *RbConfig::CONFIG.values_at("rubylibdir", "sitedir", "vendordir"), __dir__].map { |dir| "#{File.expand_path(dir)}/" }.freeze
    BESIDE = %w[config.ru Gemfile Gemfile.lock gems.rb gems.locked .env].freeze # of the working directory
    private_constant :LIBRARIES, :BESIDE

    # @param core [Core::Process]
    # @param named [Array<String>] the application's file, the configuration file
    def initialize(core, named)
      @core = core
      @compiled = named.compact
      @lock = Mutex.new
    end

    # Runs the block, which loads the application. Files that `load` takes are in no list of Ruby's.
    def gather
      seen = TracePoint.new(:script_compiled) { |point| point.instruction_sequence&.absolute_path&.then { |path| @compiled << path } }
      seen.enable { yield }
    end

    # Names the files. `error`: what kept the application from loading; the files that it speaks of count too.
    def tell(error = nil)
      @lock.synchronize do
        @count = $LOADED_FEATURES.size
        paths = [*@compiled, *$LOADED_FEATURES, *BESIDE, *of_rails, *of_error(error)].map { |path| File.expand_path(path) }
        @core.files(own(paths.uniq).map { |path| "#{path}\0" }.join)
        @compiled.clear if error.nil?
      end
    end

    # The same, where a call has loaded more.
    def tell_of_more = (tell if $LOADED_FEATURES.size != @count)

    # @return [#call] an application that tells of what its calls load
    def around(app) = Reporting.new(app, self)

    # See LoadedFiles#around.
    class Reporting
      def initialize(app, files)
        @app = app
        @files = files
      end

      def call(env)
        @app.call(env)
      ensure
        @files.tell_of_more
      end
    end

    private

    def own(paths)
      reloaded = reloaded_by_rails
      paths.reject do |path|
        path.end_with?(".so", ".bundle") || path.start_with?(*LIBRARIES, *reloaded) || path.include?("/vendor/bundle/")
      end
    end

    # Bootsnap loads files without compiling them, so the initializers are named here.
    def of_rails = rails_root ? Dir.glob("#{rails_root}/config/**/*.rb") : []

    def rails_root = (Rails.root if defined?(::Rails) && Rails.respond_to?(:application) && Rails.application)

    # Rails looks at its autoloaded files and at its routes by itself, unless that is turned off.
    def reloaded_by_rails
      return [] unless rails_root && !Rails.application.config.cache_classes

      [*Rails.autoloaders.main.dirs.map { |dir| "#{dir}/" }, *Rails.application.routes_reloader.paths.map(&:to_s)]
    rescue StandardError
      [] # a Rails whose parts have other names: a reload too many does no harm
    end

    # The innermost lines, and the file of a syntax error, which stands in the message alone.
    def of_error(error)
      return [] unless error

      [error, error.cause].compact.flat_map do |one|
        [*one.message.to_s.scan(%r{^(/[^\n:]+):\d+:}).flatten.first(8), *(one.backtrace_locations || []).first(50).map { |at| at.absolute_path || at.path }]
      end
    end
  end
end

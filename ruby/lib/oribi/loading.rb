# frozen_string_literal: true

module Oribi
  # What is told of an application while it loads, and once it has.
  module Loading
    FIRST_AFTER = 4 # seconds; the log says after 5, and each 10, that it still loads
    EACH = 1
    # Their constants are there when the application uses them.
    FRAMEWORKS = { "Rack" => :release, "Rails" => :version, "Sinatra" => :VERSION, "Hanami" => :VERSION, "Roda" => :RodaVersion,
                   "Grape" => :VERSION, "Padrino" => :VERSION }.freeze
    private_constant :FRAMEWORKS

    module_function

    # Runs the block; while it takes long, another thread tells the core where it stands.
    def watched(core, main = Thread.current)
      looker = Thread.new do
        sleep(FIRST_AFTER)
        loop do
          place_of(main)&.then { |place| core.loading_at(place) }
          sleep(EACH)
        end
      end
      looker.report_on_exception = false
      yield
    ensure
      looker&.kill&.join
    end

    # The innermost line, and in brackets that of the application's own folder which led there.
    def place_of(thread)
      lines = (thread.backtrace_locations || []).map { |at| "#{at.absolute_path || at.path}:#{at.lineno}" }
      lines = lines.reject { |line| line.start_with?("<internal:", *Failure::OURS) }
      own = lines.find { |line| line.start_with?("#{Dir.pwd}/") && !line.include?("/vendor/bundle/") }
      own && own != lines.first ? "#{lines.first} (from #{own})" : lines.first
    end

    # "rack 3.1.8, rails 8.0.1"
    def frameworks
      FRAMEWORKS.filter_map { |name, version| version_of(name, version)&.then { |text| "#{name.downcase} #{text}" } }.join(", ")
    end

    def version_of(name, version)
      return unless Object.const_defined?(name)

      framework = Object.const_get(name)
      return framework.public_send(version) if framework.respond_to?(version)

      framework.const_get(version) if framework.is_a?(Module) && framework.const_defined?(version)
    rescue StandardError
      nil # some other library of that name
    end
  end
end

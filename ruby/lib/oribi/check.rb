# frozen_string_literal: true

require_relative "gemfile"
require_relative "trial"

module Oribi
  # `oribi check`: what the core finds of the machine and the settings, and here of configuration file, application and
  # versions. A finding is five texts in a row: "wrong" or "risk", id, what, why, what to do.
  class Check
    NO_START = "The server does not start"
    RACK_LEAST = "2.2"

    # @param options [Options] after #parse_check
    def initialize(options)
      @options = options
      @findings = []
    end

    # @return [Array] the report, and the exit code
    def report(json:, strict:)
      aside { look }
      Options.check_report(@findings, versions, json, strict)
    end

    private

    def look
      configured = configuration { @options.enter_dir }
      configuration { Config.load(@options) } if configured
      finished = configured && configuration { @options.finish }
      @findings.concat(@options.check_machine) if finished
      rack_release(::Rack.release)
      gemfile
      application if finished
    end

    # Every line of the error is a mistake; those that begin with blanks belong to the one above.
    def configuration
      yield
      true
    rescue Error => e
      e.message.split(/\n(?! )/).each { |line| wrong("configuration", line, NO_START, "correct it: oribi --help, doc/options.md") }
      false
    end

    # In a child, which an application may end.
    def application
      @findings.concat(Trial.run { loaded(AppLoader.new(@options)) })
    rescue Error => e
      wrong("application", e.message, NO_START, "see what it printed above; an application is not to end the process")
    end

    def loaded(loader)
      loader.load
      advice = RailsAdvice.of_health(@options) or return []
      ["risk", "health", advice, "The application's route is never asked", "choose another path for health"]
    rescue Exception => e # rubocop:disable Lint/RescueException -- as a start would
      ["wrong", "application", Failure.text(e, file: loader.path), NO_START, "correct it; oribi --check -v shows the backtrace"]
    end

    def rack_release(release)
      return if Gem::Version.new(release) >= Gem::Version.new(RACK_LEAST)

      wrong("rack", "Rack #{release} is older than #{RACK_LEAST}", "Its interface is another one, and calls fail", "install a newer rack")
    end

    def gemfile
      text = Gemfile.advice or return
      risk("gemfile", text, "New code runs with the gems of another release", "doc/deployment.md, systemd")
    end

    def versions
      ["oribi", VERSION, "ruby", RUBY_VERSION, "rack", ::Rack.release, "codings", Core.codings]
    end

    def wrong(*texts) = @findings.push("wrong", *texts)
    def risk(*texts) = @findings.push("risk", *texts)

    # What files print while they are loaded goes to standard error: standard output has the report alone.
    def aside
      $stdout.flush
      kept = STDOUT.dup
      STDOUT.reopen(STDERR)
      yield
    ensure
      $stdout.flush
      STDOUT.reopen(kept)
      kept.close
    end
  end
end

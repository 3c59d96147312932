# frozen_string_literal: true

require "oribi"
require_relative "app_loader"
require_relative "check"
require_relative "config"
require_relative "rails_advice"
require_relative "supervisor"
require_relative "trial"

module Oribi
  # The `oribi` command: options, config file, then the supervisor; or a sub-command (`oribi ctl`, `oribi publish`,
  # `oribi check`, `oribi import`, `oribi init`). A user's mistakes are a line each and exit code 1.
  class CLI
    def initialize(out: $stdout, err: $stderr)
      @out = out
      @err = err
    end

    # @param argv [Array<String>]
    # @return [Integer] exit code
    def run(argv)
      return control(argv.drop(1)) if argv.first == "ctl"
      return publish(argv.drop(1)) if argv.first == "publish"
      return import(argv.drop(1)) if argv.first == "import"
      return check_all(argv.drop(1)) if argv.first == "check"
      return init(argv.drop(1)) if argv.first == "init"

      options = Options.new.parse(argv)
      return say(Options.help(all: argv.include?("all"))) if options["help"] == "on"
      return say("oribi #{VERSION}\ncompression: #{Core.codings}\nsystem calls: #{Core.layer}\nfrontend: #{Core.frontend}\n") if options["version"] == "on"
      return say(Options.completion(options["completion"])) unless options["completion"].empty?

      configure(options)
    rescue Error => e
      @err.puts Failure.lines_of(e) unless Core.start_failed(e.message.delete("\0"))
      1
    end

    private

    def control(argv)
      options = Options.new
      command = options.parse_control(argv)
      return say(Options.control_help) if options["help"] == "on"

      options.enter_dir
      find_control(options) if options["control"].empty?
      trap(:INT, "SYSTEM_DEFAULT") # the answer may take long, and nothing of Ruby is to run meanwhile
      options.control(command)
    end

    # The words may go after the options are known: a second reading changes none of these.
    def publish(argv)
      options = Options.new
      options.parse_publish(argv)
      return say(Options.publish_help) if options["help"] == "on"

      options.enter_dir
      find_control(options, "publish") if options["control"].empty?
      trap(:INT, "SYSTEM_DEFAULT")
      options.publish(argv)
    end

    # Whoever has to stop a server need not mend its configuration file first: without it, the server is that of the
    # folder, or that of the file's `control` if it stands before the mistake.
    def find_control(options, command = "ctl")
      Config.load(options)
    rescue Error => e
      where = options["control"].empty? ? "the server of this folder" : options["control"]
      @err.puts "oribi: #{command}: going on to #{where}, since the configuration file cannot be read: #{e.message.lines.first.chomp}"
    end

    def import(argv)
      require_relative "import"
      say(Import.run(argv))
    end

    def check_all(argv)
      options = Options.new
      json, strict = options.parse_check(argv)
      return say(Options.check_help) if options["help"] == "on"

      text, code = Check.new(options).report(json: json, strict: strict)
      say(text)
      code
    end

    # What was done before it failed is said as well.
    def init(argv)
      text, failure = Options.init_files(argv)
      say(text)
      failure ? raise(Error, failure) : 0
    end

    def configure(options)
      options.enter_dir
      hooks = Config.load(options)
      options.finish
      return say(options.to_s) if options["print_config"] == "on"

      loader = AppLoader.new(options)
      return check(loader, options) if options["check"] == "on"

      Supervisor.new(options, loader.find, hooks).run
    end

    def check(loader, options)
      options.check_files
      say(options.check_certificates)
      failure, *advice = Trial.run { loaded(loader, options) }
      raise Error, failure unless failure.empty?

      say([*advice, "#{loader.path}: application and configuration load"].map { |line| "#{line}\n" }.join)
    end

    # What keeps the application from loading, or nothing, and what is to be said of it.
    def loaded(loader, options)
      loader.load
      ["", *RailsAdvice.of_health(options)]
    rescue Error => e
      [e.message]
    rescue Exception => e # rubocop:disable Lint/RescueException -- as a start would
      [Failure.text(e, file: loader.path, details: options["verbose"] == "on")]
    end

    def say(text)
      @out.write(text)
      0
    end
  end
end

# frozen_string_literal: true

require_relative "tls"

module Oribi
  module Import
    # What a word of another server's configuration is here. Names come from the core's tables (Options.find,
    # Options.find_foreign); here are those whose values have another form, or whose meaning another one.
    class Words
      include TLS

      # What is to be written: names and values of the configuration file (`taken`), or none and the reason. A note goes
      # with both.
      Result = Struct.new(:taken, :reason, :note)

      # A value: its source text, and what it is where that can be seen without evaluating it.
      Value = Struct.new(:source, :known, :value) do
        def hash? = source.start_with?("{") || source.match?(/\A(:?\w+:?\s*=>|\w+:(?!:))/)
      end

      # Server, name => the method here that knows better than the tables.
      OWN = {
        "workers" => :workers, "worker_processes" => :workers, "port" => :port, "user" => :user, "listen" => :listen, "timeout" => :timeout,
        "stdout_redirect" => :stdout_redirect, "log_requests" => :log_requests, "quiet" => :quiet, "refork_after" => :refork_after,
        "idle_timeout" => :idle_timeout, "fork_worker" => :fork_worker, "out_of_band" => :out_of_band, "control_url" => :control_url, "logger" => :logger,
        "plugin" => :plugin, "Rainbows!" => :rainbows, "set_remote_address" => :set_remote_address, "memory_limit" => :memory_limit,
        "servers" => :servers, "restart_dir" => :restart_dir, "spawn_method" => :spawn_method,
        "default_host" => :host, "set_default_host" => :host, "bind" => :bind, "ssl_bind" => :ssl_bind
      }.freeze

      # What a server does where its configuration says nothing, and Oribi does another thing: names here that would
      # say it, and the line.
      DEFAULTS = {
        "Puma" => [[%w[workers], 'workers 1 unless ENV["WEB_CONCURRENCY"]'], [%w[threads], 'threads 5 unless ENV["RAILS_MAX_THREADS"]']],
        "Unicorn" => [[%w[workers], "workers 1"], [%w[bind], 'bind "0.0.0.0:8080"']],
        "Rhebok" => [[%w[workers], "workers 5"]],
        "Thin" => [[%w[workers], "workers 1"], [%w[bind socket port], "port 3000"], [%w[bind socket host], 'host "0.0.0.0"']],
        "Passenger" => [[%w[workers], "workers 6"], [%w[bind socket port], "port 3000"], [%w[bind socket host], 'host "0.0.0.0"'],
                        [%w[restart_file], 'restart_file "tmp/restart.txt"']],
        "Rails" => [[%w[bind port], 'port ENV.fetch("PORT", 3000)']]
      }.tap { |all| all["Rainbows"] = all["Pitchfork"] = all["Unicorn"] }.freeze

      # @param server [String] a value of SERVERS
      # @param binds [Boolean] the configuration has addresses, so that a port is one more
      def initialize(server, binds: false)
        @server = server
        @binds = binds
      end

      # @param names [Array<String>] options that the configuration sets
      # @return [Array<String>] lines
      def defaults(names)
        lines = DEFAULTS.fetch(@server, []).reject { |here, _| (here & names).any? }.map { |_, line| "#{line}\n" }
        lines.empty? ? [] : ["\n# What #{@server} does unless told otherwise:\n", *lines]
      end

      # @return [String, nil] the hook of Oribi that this name is
      def self.hook(name)
        here = Options.find_foreign(name)&.fetch(:here) || name
        here if Hooks::NAMES.include?(here.to_sym)
      end

      # Is this a word of some server's configuration?
      def self.known?(name)
        return false if Config::RUBY_WORDS.include?(name)

        !!(hook(name) || Options.find(name) || Options.find_foreign(name) || switch_or_alias?(name))
      end

      # Names that the core resolves though they are no options: `timeout`, `keepalive`, `no_preload`.
      def self.switch_or_alias?(name)
        Options.new.set_values(name, [], source: :file)
        true
      rescue Error => e
        !e.message.start_with?("unknown option")
      end

      # @param name [String]
      # @param values [Array<Value>]
      # @return [Result]
      def map(name, values)
        own = OWN[name]
        result = send(own, name, values) if own
        result || plain(name, values)
      end

      private

      def puma? = %w[Puma Rails].include?(@server)
      def unicorn? = %w[Unicorn Pitchfork Rainbows].include?(@server)

      def plain(name, values)
        foreign = Options.find(name) ? nil : foreign(name)
        return Result.new(nil, foreign[:advice]) if foreign && !foreign[:here]

        here = foreign ? foreign[:here] : Options.find(name) || name
        take(here, values)
      end

      # Also for a name with no_ before it, where there is none of that here.
      def foreign(name)
        Options.find_foreign(name) || (Options.find_foreign(name.delete_prefix("no_"))&.then { |found| found unless found[:here] } if name.start_with?("no_"))
      end

      # The line, if the core takes what can be seen of its values.
      def take(here, values, note = nil)
        refusal = refused(here, values)
        return take(here, [Value.new("0", true, 0)], "0 is no limit") if refusal.nil? && values.map(&:source) == ["Float::INFINITY"]
        return Result.new(nil, refusal) if refusal

        Result.new([[here, values.map(&:source).join(", ")]], nil, note)
      end

      def refused(here, values)
        known = values.all?(&:known)
        values = values.map(&:value)
        values = [values.join(":")] if here == "threads" && values.size == 2
        probe = Options.new
        known ? probe.set_values(here, values, source: :file) : probe_name(probe, here)
        nil
      rescue Error => e
        e.message.start_with?("unknown option") ? "not an option that import knows" : e.message.dup.force_encoding(Encoding::UTF_8).scrub
      end

      # Only the name can be looked at: what has no value says so, what is not there says that.
      def probe_name(probe, here)
        probe.set_values(here, [], source: :file)
      rescue Error => e
        raise if e.message.start_with?("unknown option")
      end

      def text(string) = Value.new(string.inspect, true, string)

      ZERO = "0 is a single process in Puma, and one worker for each CPU here"
      private_constant :ZERO

      def workers(_name, values)
        return unless puma?
        return take("workers", [Value.new("1", true, 1)], "#{ZERO}; `single true` instead is one process here") if ["0", 0].include?(values.first&.value)
        return take("workers", values, "#{ZERO}: give it 1") if values.one? && values.first.source.match?(/\b0\b/)
        take("workers", values, "unset or 0: #{ZERO[5..]}") if values.one? && values.first.source.match?(/\AENV\[[^\]]+\]\z/)
      end

      # A port is one more address in Puma; here it is looked at where no address is given.
      def port(_name, values)
        return take("bind", [address_of(*values)], "an address more in Puma, and here only where there is no bind") if @binds && values.size.between?(1, 2)

        both([take("port", values.first(1)), take("host", values.last(1))]) if values.size == 2
      end

      # Puma's is for ports without a host; beside addresses here a host is an error.
      def host(_name, values)
        @binds ? Result.new(nil, "the addresses of bind say their hosts") : take("host", values)
      end

      def address_of(port, host = text("0.0.0.0"))
        return text("#{host.value.to_s.include?(":") ? "[#{host.value}]" : host.value}:#{port.value}") if host.known && port.known

        Value.new("\"#{[host, port].map { |value| value.known ? value.value : "\#{#{value.source}}" }.join(":")}\"", false, nil)
      end

      def user(_name, values)
        both([take("user", values.first(1)), take("group", values.last(1))]) if values.size == 2
      end

      def both(results)
        results.find(&:reason) || Result.new(results.flat_map(&:taken), nil, results.filter_map(&:note).reduce { |all, note| "#{all}; #{note}" })
      end

      def listen(_name, values)
        address, settings = values
        return unless settings&.hash?

        set = settings.known ? settings.value : {}
        kept = set.slice("backlog", "umask").reject { |_, value| value.nil? }
        kept["ipv6only"] = "on" if set["ipv6only"] && address.value.to_s.start_with?("[::]:")
        dropped = settings.known ? set.keys - kept.keys - ["ipv6only"] : [settings.source]
        note = "not there and not needed, or the system's: #{dropped.join(", ")}" if dropped.any?
        return take("bind", [address], note) if kept.empty?
        query = kept.map { |key, value| "#{key}=#{key == "umask" && value.is_a?(Integer) ? format("%03o", value) : value}" }
        take("bind", [with_query(address, query.join("&"))], note)
      end

      def with_query(address, query)
        address.known ? text("#{address.value}?#{query}") : Value.new("\"\#{#{address.source}}?#{query}\"", false, nil)
      end

      # The application's time in Unicorn; the client's in Rhebok, as here.
      def timeout(_name, values)
        return unless unicorn?

        note = "Oribi::CallTimeout is raised in the call, and two seconds later its worker is replaced: without cleanup" if values.size > 1
        take("call_timeout", values.first(1), note)
      end

      def stdout_redirect(_name, values)
        return if values.size < 2 || values[1].value.nil? && values[1].known

        take("error_log", [values[1]], "what the application prints goes to standard output; access_log takes the requests; both append")
      end

      def log_requests(_name, values)
        off = values.first&.known && !values.first.value
        take("access_log", [text(off ? "off" : "-")]) if values.all?(&:known)
      end

      def quiet(_name, values)
        take("access_log", [text(values.first&.value == false ? "-" : "off")], "quiet is about warnings here; in Puma it is about requests") if puma?
      end

      def refork_after(_name, values)
        first = values.first
        return unless first&.known && first.value.is_a?(Array) && first.value.first.is_a?(Integer)

        number = first.value.first
        take("refork_after", [Value.new(number.to_s, true, number)], "one number here: the first of #{first.source}")
      end

      def idle_timeout(_name, _values)
        Result.new(nil, "Puma ends itself when it has nothing to do; here idle_timeout is how long a connection may rest") if puma?
      end

      def fork_worker(_name, values)
        take("refork_after", [Value.new("1000", true, 1000)], "1000 is Puma's default") if values.empty?
      end

      def out_of_band(_name, _values)
        take("oob_gc", [], "garbage is collected while no request waits; a block for other work has no counterpart")
      end

      # A path here: the socket's.
      def control_url(_name, values)
        return unless values.one? && values.first.known

        path = values.first.value.to_s[%r{\A(?:unix://)?(/.*)\z}, 1]
        path ? take("control", [text(path)]) : Result.new(nil, "control takes the absolute path of a unix socket")
      end

      PLUGINS = {
        "solid_queue" => "give it a process of its own, as in a line of the Procfile: jobs: bin/jobs",
        "systemd" => "not there and not needed: the server tells systemd by itself (Type=notify)",
        "yabeda" => "status ADDR answers with metrics for Prometheus",
        "statsd" => "status ADDR answers with metrics for Prometheus"
      }.freeze
      private_constant :PLUGINS

      def plugin(_name, values)
        name = values.first&.value.to_s
        return take("restart_file", [text("tmp/restart.txt")], "a touch of tmp/restart.txt is a reload, as by bin/rails restart") if name == "tmp_restart"
        reason = PLUGINS[name]
        Result.new(nil, reason) if reason
      end

      def rainbows(_name, _values)
        Result.new(nil, "threads N are calls at a time in one worker, for each `use`; idle_timeout is its keepalive_timeout")
      end

      def set_remote_address(_name, values)
        return unless values.first&.source&.match?(/proxy_protocol/)

        Result.new(nil, "proxy_protocol on reads the PROXY line of those that trusted_proxies names")
      end

      # Passenger's is a number of megabytes.
      def memory_limit(_name, values)
        value = values.first
        take("memory_max", [text("#{value.value}M")]) if value&.known && value.value.to_s.match?(/\A\d+\z/)
      end

      def servers(_name, values)
        take("workers", values, "all on one address; in Thin each has its own") unless values.map(&:source) == ["1"]
      end

      def spawn_method(_name, values)
        take("preload", [Value.new(values.first.value == "smart" ? "true" : "false", true, true)]) if %w[smart direct].include?(values.first&.value)
      end

      # Where Passenger looks for restart.txt.
      def restart_dir(_name, values)
        folder = values.first
        take("restart_file", [text("#{folder.value.to_s.chomp("/")}/restart.txt")]) if folder&.known
      end

      def logger(_name, values)
        Result.new(nil, "error_log takes a file, not an object; error_log_format json makes objects of its lines") unless values.all?(&:known)
      end
    end
  end
end

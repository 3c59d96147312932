# frozen_string_literal: true

module Bench
  ROOT = File.expand_path("../..", __dir__)

  # Where and how a server is to run. listen: "127.0.0.1:9292" or the path of a unix socket. app: a config.ru or
  # app.psgi. threads: of one worker, for servers that have them, nil for the peer's own. dir: a scratch folder. close:
  # the client wants a connection per request.
  Site = Struct.new(:listen, :app, :workers, :threads, :dir, :close, :chdir, keyword_init: true) do
    def unix? = listen.start_with?("/")
    def host = listen[/\A(.*):\d+\z/, 1]
    def port = Integer(listen[/:(\d+)\z/, 1])
  end

  # A server that can be measured. Its instances are in bench/lib/peers.rb, its configuration, where it needs one, in
  # bench/peers/.
  #
  #     key          the name in results and for --servers; name: for people
  #     kind         :rack or :psgi (runs any application), :reference (bare loop, nginx: hello only), :files
  #                  (see file_peers.rb)
  #     command      of a Site: [environment, argv]
  #     needs        [] of commands, paths, or "gem:name"; the first that is missing is the reason
  #     version      argv that prints it, or a callable that gives it
  #     reload       signal to the main process that makes it load new code, or nil; stop: signal for a graceful end
  #     variant_of   another key: taken only where a workload wants every configuration of one server
  #     lacks        [] of what it cannot do: :unix, :keep_alive, :workers (more than one); :length means that it does
  #                  not find out itself how long an answer of one part is, and is better off with an application that
  #                  says so
  class Peer
    attr_reader :key, :name, :kind, :package, :reload, :stop, :variant_of, :lacks

    def initialize(key, name, kind, command:, needs: [], version: nil, package: "script/setup bench", reload: nil, stop: :TERM, variant_of: nil, lacks: [])
      @key = key
      @name = name
      @kind = kind
      @command = command
      @needs = needs
      @version = version
      @package = package
      @reload = reload
      @stop = stop
      @variant_of = variant_of
      @lacks = lacks
    end

    # The same server with more options, which its command takes before all others.
    def with(key, name, *options)
      command = lambda { |site|
        env, argv = @command.call(site)
        [env, [argv.first, *options, *argv.drop(1)]]
      }
      Peer.new(key, name, kind, command: command, needs: @needs, version: @version, package: package, reload: reload, stop: stop,
                                variant_of: self.key, lacks: lacks)
    end

    def oribi? = key.start_with?("oribi")
    def lacks?(what) = lacks.include?(what)

    # [environment, argv]; argv is strings.
    def command(site)
      env, argv = @command.call(site)
      [{ "PORT" => nil, "RACK_ENV" => nil, "PLACK_ENV" => nil }.merge(env), argv.map(&:to_s)]
    end

    # Why it cannot be had, or nil.
    def missing
      lost = @needs.find { |need| !had?(need) } or return nil

      "#{lost.delete_prefix("#{ROOT}/").sub("gem:", "gem ")} is not installed (#{package})"
    end

    def version
      return @versioned if defined?(@versioned)

      text = @version.is_a?(Proc) || @version.nil? ? @version&.call : IO.popen(@version, err: %i[child out], &:read)
      @versioned = text.to_s[/\d+(\.\w+)+/]
    rescue SystemCallError
      @versioned = nil
    end

    private

    def had?(need)
      return Gem::Specification.any? { |spec| spec.name == need.delete_prefix("gem:") } if need.start_with?("gem:")
      return File.exist?(need) if need.include?("/")

      ENV.fetch("PATH").split(":").any? { |folder| File.executable?(File.join(folder, need)) }
    end
  end
end

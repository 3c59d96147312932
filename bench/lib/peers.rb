# frozen_string_literal: true

require "fileutils"
require_relative "frontend_peers"
require_relative "file_peers"
require_relative "peer"
require_relative "socket_peers"

module Bench
  # The servers that bench/run knows, each in the best configuration that its documentation tells of for the machine at
  # hand: keep-alive where it has it, no access log, the application loaded before the fork.
  module Peers
    CONFIGS = File.join(ROOT, "bench/peers")
    MANY = "1000000000"
    # The default of 10,000 connections is filled by the workload that has as many silent ones.
    ORIBI_OPTIONS = %w[--no-dev --env production --quiet --access-log off --connections-max 16384].freeze
    NGINX = "/usr/sbin/nginx"
    STARLET = "/usr/share/perl5/Plack/Handler/Starlet.pm"

    # Passenger's applications leave their parents; as a subreaper their main process keeps them in its tree (prctl(2),
    # PR_SET_CHILD_SUBREAPER = 36).
    SUBREAPER = ["ruby", "-rfiddle", "-e", "Fiddle::Function.new(Fiddle.dlopen(nil)['prctl'], [-4] * 5, 4).call(36, 1, 0, 0, 0); exec(*ARGV)"].freeze

    module_function

    # Compiled when first wanted, with what the core is compiled with.
    def compiled(name, source, *libraries)
      binary = File.join(ROOT, "build/bench", name)
      source = File.join(ROOT, source)
      shared = [*Dir[File.join(ROOT, "bench/load/*.h")], *Dir[File.join(File.dirname(source), "*.h")]]
      unless File.exist?(binary) && File.mtime(binary) > [source, *shared].map { |path| File.mtime(path) }.max
        FileUtils.mkdir_p(File.dirname(binary))
        system("cc", "-O2", "-o", binary, source, *libraries) or raise "#{source} did not compile"
      end
      binary
    end

    # Writes a configuration of bench/peers/ with its %<places>s filled into the scratch folder and gives its path.
    def config(dir, name, **values)
      File.join(dir, name).tap { |path| File.write(path, format(File.read(File.join(CONFIGS, name)), dir: dir, **values)) }
    end

    def nginx(site, location)
      File.write(File.join(site.dir, "hello.txt"), "Hello, World!")
      path = config(site.dir, "nginx.conf", workers: site.workers, listen: site.unix? ? "unix:#{site.listen}" : site.listen, location: location)
      [{}, [NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
    end

    # nginx before a server that listens on a unix socket. keep_alive: whether it keeps its connections to the server.
    def proxy(upstream = nil, keep_alive: false)
      command = lambda { |site|
        # Whoever nginx runs as must reach the socket.
        File.chmod(0o777, upstream)
        path = config(site.dir, "nginx-proxy.conf", listen: site.listen, upstream: upstream, http_version: keep_alive ? "1.1" : "1.0",
                                                    keep_alive: keep_alive ? "keepalive 64; keepalive_requests 1000000000;" : "")
        [{}, [NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
      }
      Peer.new("nginx-proxy", "nginx, proxy", :proxy, command: command, needs: [NGINX], stop: :QUIT)
    end

    def environment(site, **more)
      { "BENCH_LISTEN" => site.listen, "BENCH_APP" => site.app, "BENCH_WORKERS" => site.workers.to_s }.merge(more.transform_keys(&:to_s))
    end

    def url(site) = site.unix? ? "unix://#{site.listen}" : "tcp://#{site.listen}"

    def oribi(command, site, threads: nil)
      threads = site.threads || threads
      threads = threads ? ["--threads", threads] : []
      [{}, [File.join(ROOT, command), *ORIBI_OPTIONS, "--workers", site.workers, *threads, "--bind", url(site).delete_prefix("tcp://"), site.app]]
    end

    # With the one line in the application (bench/apps/forms.ru, forms.psgi) that makes Rack's or Plack's request object
    # parse in C.
    def with_line(command, site) = oribi(command, site).then { |env, argv| [env.merge("BENCH_LINE" => "1"), argv] }

    def puma(site, workers:, threads:)
      [environment(site, BENCH_LISTEN: url(site), BENCH_WORKERS: workers.to_s, BENCH_THREADS: (site.threads || threads).to_s),
       ["puma", "-C", File.join(CONFIGS, "puma.rb"), site.app]]
    end

    def by_config(site, command, *options) = [environment(site), [command, *options, "-c", File.join(CONFIGS, "#{command}.rb"), site.app]]

    def address(site, host, port, path) = site.unix? ? [*path, site.listen] : [host, site.host, port, site.port]

    def passenger(site)
      listen = site.unix? ? ["--socket", site.listen] : ["--address", site.host, "--port", site.port]
      folder = File.dirname(site.app)
      [{}, [*SUBREAPER, "passenger", "start", folder, *listen, "--engine", "builtin", "--rackup", site.app, "--app-type", "rack", "--environment", "production",
            "--min-instances", site.workers, "--max-pool-size", site.workers, "--spawn-method", "smart", "--log-level", "1",
            "--log-file", "#{site.dir}/log", "--pid-file", "#{site.dir}/pid", "--instance-registry-dir", site.dir, "--disable-security-update-check",
            "--max-request-queue-size", "10000"]]
    end

    def starlet(site)
      listen = site.unix? ? ["--listen", site.listen] : ["--host", site.host, "--port", site.port]
      keep_alive = site.close ? [] : ["--max-keepalive-reqs", MANY]
      [{}, ["plackup", "-s", "Starlet", "-E", "none", *listen, "--max-workers", site.workers, *keep_alive, "--max-reqs-per-child", MANY, site.app]]
    end

    def starman(site)
      keep_alive = site.close ? ["--disable-keepalive"] : []
      [{}, ["starman", "-E", "none", "--preload-app", "--workers", site.workers, "--max-requests", MANY, *keep_alive, "--listen", site.listen, site.app]]
    end

    # Its plain HTTP socket closes each connection and does not say so by itself.
    def uwsgi(site)
      socket = site.close ? ["--add-header", "Connection: close", "--http-socket"] : ["--http11-socket"]
      [environment(site), ["uwsgi-core", "--ini", File.join(CONFIGS, "uwsgi.ini"), *socket, site.listen]]
    end

    LIST = [
      Peer.new("oribi", "Oribi (Rack)", :rack, needs: [File.join(ROOT, "ruby/exe/oribi"), File.join(ROOT, "ruby/lib/oribi/oribi.so")],
                                               package: "make", version: [File.join(ROOT, "ruby/exe/oribi"), "--version"], reload: :HUP,
                                               command: ->(site) { oribi("ruby/exe/oribi", site) }),
      Peer.new("oribi-threads", "Oribi (Rack), 5 threads", :rack, needs: [File.join(ROOT, "ruby/exe/oribi"), File.join(ROOT, "ruby/lib/oribi/oribi.so")],
                                                                  package: "make", variant_of: "oribi", reload: :HUP,
                                                                  command: ->(site) { oribi("ruby/exe/oribi", site, threads: 5) }),
      Peer.new("oribi-psgi", "Oribi (PSGI)", :psgi, needs: [File.join(ROOT, "perl/bin/oribi-psgi"), File.join(ROOT, "perl/blib/arch")],
                                                    package: "make", version: [File.join(ROOT, "perl/bin/oribi-psgi"), "--version"], reload: :HUP,
                                                    command: ->(site) { oribi("perl/bin/oribi-psgi", site) }),
      Peer.new("oribi-rack", 'Oribi, require "oribi/rack"', :rack_line, needs: [File.join(ROOT, "ruby/exe/oribi"), File.join(ROOT, "ruby/lib/oribi/rack.rb")],
                                                                        package: "make", variant_of: "oribi",
                                                                        command: ->(site) { with_line("ruby/exe/oribi", site) }),
      Peer.new("oribi-plack", "Oribi, use Oribi::Plack", :psgi_line, needs: [File.join(ROOT, "perl/bin/oribi-psgi"), File.join(ROOT, "perl/blib/arch")],
                                                                     package: "make", variant_of: "oribi-psgi",
                                                                     command: ->(site) { with_line("perl/bin/oribi-psgi", site) }),
      Peer.new("bare", "bare C loop", :reference, needs: ["cc"], package: "script/setup run", lacks: %i[unix workers],
                                                  command: lambda { |site|
                                                    [{ "BARE_CLOSE" => site.close ? "1" : nil }, [compiled("bare", "bench/bare.c"), site.port]]
                                                  }),
      Peer.new("nginx-return", "nginx, return 200", :reference, needs: [NGINX], version: [NGINX, "-v"], stop: :QUIT,
                                                                command: ->(site) { nginx(site, 'location = / { return 200 "Hello, World!"; }') }),
      Peer.new("nginx-file", "nginx, 13-byte file", :reference, needs: [NGINX], version: [NGINX, "-v"], stop: :QUIT,
                                                                command: ->(site) { nginx(site, "location = / { try_files /hello.txt =404; }") }),
      Peer.new("puma", "Puma, 5 threads", :rack, needs: ["puma"], version: %w[puma --version], reload: :USR2, lacks: [:workers],
                                                 command: ->(site) { puma(site, workers: 0, threads: 5) }),
      Peer.new("puma-1", "Puma, 1 thread", :rack, needs: ["puma"], version: %w[puma --version], variant_of: "puma", lacks: [:workers],
                                                  command: ->(site) { puma(site, workers: 0, threads: 1) }),
      Peer.new("puma-cluster", "Puma cluster, 5 threads", :rack, needs: ["puma"], version: %w[puma --version], variant_of: "puma", reload: :USR2,
                                                                 command: ->(site) { puma(site, workers: site.workers, threads: 5) }),
      Peer.new("puma-cluster-1", "Puma cluster, 1 thread", :rack, needs: ["puma"], version: %w[puma --version], variant_of: "puma", reload: :USR2,
                                                                  command: ->(site) { puma(site, workers: site.workers, threads: 1) }),
      Peer.new("unicorn", "Unicorn", :rack, needs: ["unicorn"], version: %w[unicorn --version], lacks: %i[keep_alive length], stop: :QUIT, reload: :HUP,
                                            command: ->(site) { by_config(site, "unicorn", "-E", "none") }),
      Peer.new("pitchfork", "Pitchfork", :rack, needs: ["pitchfork"], version: %w[pitchfork --version], lacks: %i[keep_alive length], stop: :QUIT,
                                                command: ->(site) { by_config(site, "pitchfork", "-E", "none") }),
      Peer.new("falcon", "Falcon", :rack, needs: ["falcon"], version: %w[falcon --version], stop: :INT, reload: :HUP,
                                          command: ->(site) { [environment(site), ["falcon-host", File.join(CONFIGS, "falcon.rb")]] }),
      Peer.new("iodine", "Iodine", :rack, needs: ["iodine"], version: -> { Gem::Specification.find_by_name("iodine").version.to_s }, stop: :INT,
                                          command: lambda { |site|
                                            listen = site.unix? ? ["-p", 0, "-b", site.listen] : ["-b", site.host, "-p", site.port]
                                            [{}, ["iodine", *listen, "-t", site.threads || 1, "-w", site.workers, site.app]]
                                          }),
      Peer.new("agoo", "Agoo", :rack, needs: ["agoo"], version: -> { Gem::Specification.find_by_name("agoo").version.to_s }, stop: :INT,
                                      command: lambda { |site|
                                        [environment(site), ["ruby", File.join(CONFIGS, "agoo.rb")]]
                                      }),
      Peer.new("rhebok", "Rhebok", :rack, needs: ["gem:rhebok"], version: -> { Gem::Specification.find_by_name("rhebok").version.to_s },
                                          lacks: %i[keep_alive length],
                                          command: ->(site) { [environment(site), ["ruby", File.join(CONFIGS, "rhebok.rb")]] }),
      Peer.new("passenger", "Passenger", :rack, needs: ["passenger"], version: %w[passenger --version], stop: :INT,
                                                command: ->(site) { passenger(site) }),
      Peer.new("starlet", "Starlet", :psgi, needs: [STARLET], version: %w[perl -MStarlet -e print$Starlet::VERSION], lacks: [:length],
                                               command: ->(site) { starlet(site) }),
      Peer.new("starman", "Starman", :psgi, needs: ["starman"], version: %w[perl -MStarman -e print$Starman::VERSION], lacks: [:length], reload: :HUP,
                                            command: ->(site) { starman(site) }),
      Peer.new("twiggy", "Twiggy", :psgi, needs: ["twiggy"], version: %w[perl -MTwiggy -e print$Twiggy::VERSION], lacks: %i[workers length],
                                          command: ->(site) { [{}, ["twiggy", "-E", "none", "--listen", site.listen, site.app]] }),
      Peer.new("uwsgi", "uWSGI, psgi plugin", :psgi, needs: ["uwsgi-core", "/usr/lib/uwsgi/plugins/psgi_plugin.so"],
                                                     version: %w[uwsgi-core --version], lacks: [:length], stop: :TERM, reload: :HUP,
                                                     command: ->(site) { uwsgi(site) }),
      *FilePeers::LIST,
      *FrontendPeers::LIST,
      *SocketPeers::LIST,
    ].freeze

    def find(key) = LIST.find { |peer| peer.key == key }
  end
end

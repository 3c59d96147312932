# frozen_string_literal: true

require_relative "file_tree"
require_relative "peer"

module Bench
  # The servers of the workloads of files.rb: kind :files. The applications that some of them have beside their files
  # answer / with hello.
  module FilePeers
    HELLO = { rack: File.join(ROOT, "bench/apps/hello.ru"), psgi: File.join(ROOT, "bench/apps/hello.psgi") }.freeze
    MIXED = File.join(ROOT, "bench/apps/files.ru")

    module_function

    # nosniff=off: the others send no such header.
    def oribi(command, kind, site)
      mounts = %w[s z].flat_map { |name| ["--static", "/#{name}=#{FileTree.path}/#{name}?nosniff=off"] }
      Peers.oribi(command, site.dup.tap { |same| same.app ||= HELLO.fetch(kind) }).then { |env, argv| [env, [*argv[0..-2], *mounts, argv.last]] }
    end

    # The same level for all that know the coding, see LEVELS.
    def compressing(command, kind, coding, site)
      app = File.join(ROOT, "bench/apps", kind == :rack ? "json.ru" : "json.psgi")
      env, argv = Peers.oribi(command, site.dup.tap { |same| same.app = app })
      [env.merge("BENCH_JSON" => FileTree.json_path), [*argv[0..-2], "--compress", coding, "--compress-level", LEVELS.fetch(coding), argv.last]]
    end

    def nginx_gzip(site)
      FileTree.json_path
      path = Peers.config(site.dir, "nginx-gzip.conf", workers: site.workers, listen: site.listen, files: FileTree.path, level: LEVELS.fetch("gzip"))
      [{}, [Peers::NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
    end

    def nginx(site)
      path = Peers.config(site.dir, "nginx-files.conf", workers: site.workers, listen: site.listen, files: FileTree.path)
      [{}, [Peers::NGINX, "-e", "#{site.dir}/error.log", "-c", path]]
    end

    def h2o(site)
      [{}, ["h2o", "-m", "worker", "-c", Peers.config(site.dir, "h2o.conf", host: site.host, port: site.port, workers: site.workers, files: FileTree.path)]]
    end

    def lighttpd(site)
      path = Peers.config(site.dir, "lighttpd.conf", host: site.host, port: site.port, workers: site.workers, files: FileTree.path)
      [{}, ["/usr/sbin/lighttpd", "-D", "-f", path]]
    end

    def mixed(site) = site.dup.tap { |same| same.app = MIXED }

    def iodine(site)
      site = mixed(site)
      [{ "BENCH_FILES" => nil }, ["iodine", "-b", site.host, "-p", site.port, "-t", 1, "-w", site.workers, "-www", FileTree.path, site.app]]
    end

    def puma(site)
      Peers.puma(mixed(site), workers: 0, threads: 5).then { |env, argv| [env.merge("BENCH_FILES" => FileTree.path), argv] }
    end

    # gzip's own default, and those that take about as long for the others.
    LEVELS = { "gzip" => 6, "zstd" => 3, "br" => 4 }.freeze

    COMPRESSING = LEVELS.keys.flat_map do |coding|
      [Peer.new("oribi-#{coding}", "Oribi (Rack), #{coding} level #{LEVELS[coding]}", :compressing, needs: [File.join(ROOT, "ruby/lib/oribi/oribi.so")],
                package: "make", command: ->(site) { compressing("ruby/exe/oribi", :rack, coding, site) }),
       Peer.new("oribi-psgi-#{coding}", "Oribi (PSGI), #{coding} level #{LEVELS[coding]}", :compressing, needs: [File.join(ROOT, "perl/blib/arch")],
                package: "make", command: ->(site) { compressing("perl/bin/oribi-psgi", :psgi, coding, site) })]
    end

    LIST = [
      *COMPRESSING,
      Peer.new("nginx-gzip", "nginx, gzip level #{LEVELS["gzip"]} of a file", :compressing, needs: ["/usr/sbin/nginx"], version: ["/usr/sbin/nginx", "-v"],
                                                                                    stop: :QUIT, command: ->(site) { nginx_gzip(site) }),
      Peer.new("oribi-files", "Oribi (Rack), its files", :files, needs: [File.join(ROOT, "ruby/lib/oribi/oribi.so")], package: "make",
                                                                 command: ->(site) { oribi("ruby/exe/oribi", :rack, site) }),
      Peer.new("oribi-psgi-files", "Oribi (PSGI), its files", :files, needs: [File.join(ROOT, "perl/blib/arch")], package: "make",
                                                                      command: ->(site) { oribi("perl/bin/oribi-psgi", :psgi, site) }),
      Peer.new("nginx-files", "nginx, files", :files, needs: ["/usr/sbin/nginx"], version: ["/usr/sbin/nginx", "-v"], stop: :QUIT,
                                                      command: ->(site) { nginx(site) }),
      Peer.new("h2o-files", "h2o, files", :files, needs: ["h2o"], version: %w[h2o --version], command: ->(site) { h2o(site) }),
      Peer.new("lighttpd-files", "lighttpd, files", :files, needs: ["/usr/sbin/lighttpd"], version: ["/usr/sbin/lighttpd", "-v"], stop: :INT,
                                                            command: ->(site) { lighttpd(site) }),
      Peer.new("iodine-files", "Iodine, its files", :files, needs: ["iodine"], stop: :INT, command: ->(site) { iodine(site) }),
      Peer.new("puma-files", "Puma, Rack::Static", :files, needs: ["puma"], lacks: [:workers], command: ->(site) { puma(site) }),
    ].freeze
  end
end

# frozen_string_literal: true

require "shellwords"
require_relative "certificate"
require_relative "peer"

module Bench
  # The servers of workloads/frontend.rb: kind :frontend. Oribi with a frontend; nginx, h2o and HAProxy as proxies in
  # front of the same Oribi on a unix socket, to which they keep connections; servers that speak TLS by themselves. All
  # with the same certificate, TLS 1.3 and AES-256-GCM.
  module FrontendPeers
    H2O = "h2o"
    HAPROXY = "/usr/sbin/haproxy"
    NGINX = "/usr/sbin/nginx"

    module_function

    def oribi(command, site, address)
      [{}, [File.join(ROOT, command), *Peers::ORIBI_OPTIONS, "--workers", site.workers, "--bind", address, site.app]]
    end

    def plain(command, site) = oribi(command, site, "tcp://#{site.listen}?frontend=on")

    def tls(command, site)
      Certificate.ready
      oribi(command, site, "tls://#{site.listen}?certificate=#{Certificate::PEM}&key=#{Certificate::KEY}")
    end

    # One tree of processes: Oribi in the background, and in place of the shell the proxy, when Oribi's socket is there.
    def before(command, site)
      socket = File.join(site.dir, "app")
      back = oribi(command, site, socket).last.map(&:to_s).shelljoin
      front = yield(socket).map(&:to_s).shelljoin
      [{}, ["sh", "-c", "#{back} & until [ -S #{socket} ]; do sleep 0.05; done; chmod 777 #{socket}; exec #{front}"]]
    end

    def nginx_argv(site, secure, location)
      Certificate.ready
      words = secure ? "ssl http2 " : ""
      path = Peers.config(site.dir, "nginx-frontend.conf", workers: 1, listen: site.listen, words: words, location: location,
                                                       socket: File.join(site.dir, "app"), pem: Certificate::PEM, key: Certificate::KEY)
      [NGINX, "-e", "#{site.dir}/error.log", "-c", path]
    end

    def nginx(command, site, secure) = before(command, site) { nginx_argv(site, secure, "proxy_pass http://app;") }
    def nginx_return(site) = [{}, nginx_argv(site, true, 'return 200 "Hello, World!";')]

    def h2o(command, site)
      Certificate.ready
      before(command, site) do |socket|
        [H2O, "-m", "worker", "-c", Peers.config(site.dir, "h2o-frontend.conf", host: site.host, port: site.port, socket: socket,
                                                                            pem: Certificate::PEM, key: Certificate::KEY)]
      end
    end

    # Its certificate and key stand in one file.
    def haproxy(command, site)
      Certificate.ready
      pem = File.join(site.dir, "haproxy.pem")
      File.write(pem, File.read(Certificate::PEM) + File.read(Certificate::KEY))
      before(command, site) do |socket|
        [HAPROXY, "-db", "-f", Peers.config(site.dir, "haproxy-frontend.cfg", listen: site.listen, socket: socket, pem: pem)]
      end
    end

    def puma(site)
      Certificate.ready
      env, argv = Peers.puma(site, workers: 0, threads: 5)
      address = "ssl://#{site.listen}?key=#{Certificate::KEY}&cert=#{Certificate::PEM}&verify_mode=none"
      [env.merge("BENCH_LISTEN" => address), argv]
    end

    def falcon(site)
      Certificate.ready
      env = Peers.environment(site, BENCH_PEM: Certificate::PEM, BENCH_KEY: Certificate::KEY)
      [env, ["falcon-host", File.join(Peers::CONFIGS, "falcon-tls.rb")]]
    end

    COMMANDS = { "oribi" => ["ruby/exe/oribi", "ruby/lib/oribi/oribi.so", "Rack"],
                 "oribi-psgi" => ["perl/bin/oribi-psgi", "perl/blib/arch", "PSGI"] }.freeze

    def peer(key, name, kind, needs, **more, &command) = Peer.new(key, name, kind, needs: needs, command: command, **more)

    OWN = COMMANDS.flat_map do |key, (command, extension, language)|
      kind = language == "Rack" ? :frontend : :frontend_psgi
      needs = [File.join(ROOT, extension), File.join(ROOT, "build/core/oribi-frontend")]
      back = language == "Rack" ? "oribi" : "oribi-psgi"
      [peer("#{key}-frontend", "Oribi (#{language}), frontend", kind, needs, package: "make") { |site| plain(command, site) },
       peer("#{key}-tls", "Oribi (#{language}), frontend with TLS", kind, needs, package: "make") { |site| tls(command, site) },
       peer("nginx-#{back}", "nginx before Oribi (#{language})", kind, [NGINX, *needs], stop: :QUIT) { |site| nginx(command, site, false) },
       peer("nginx-#{back}-tls", "nginx with TLS before Oribi (#{language})", kind, [NGINX, *needs], stop: :QUIT) { |site| nginx(command, site, true) }]
    end

    LIST = [
      *OWN,
      peer("nginx-return-tls", "nginx with TLS, return 200", :frontend, [NGINX], stop: :QUIT) { |site| nginx_return(site) },
      peer("h2o-oribi-tls", "h2o with TLS before Oribi (Rack)", :frontend, [H2O, File.join(ROOT, "ruby/lib/oribi/oribi.so")],
            version: [H2O, "--version"]) do |site|
        h2o("ruby/exe/oribi", site)
      end,
      peer("haproxy-oribi-tls", "HAProxy with TLS before Oribi (Rack)", :frontend, [HAPROXY, File.join(ROOT, "ruby/lib/oribi/oribi.so")],
            version: [HAPROXY, "-v"]) do |site|
        haproxy("ruby/exe/oribi", site)
      end,
      peer("puma-tls", "Puma with TLS, 5 threads", :frontend, ["puma"], lacks: %i[workers h2]) { |site| puma(site) },
      peer("falcon-tls", "Falcon with TLS", :frontend, ["falcon"], stop: :INT) { |site| falcon(site) },
    ].freeze

    # What an application of one language is called for.
    APPS = { frontend: :rack, frontend_psgi: :psgi }.freeze
  end
end

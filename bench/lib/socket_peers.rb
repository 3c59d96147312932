# frozen_string_literal: true

require_relative "peer"

module Bench
  # The servers of workloads/sockets.rb: kind :sockets. Each has an application of its own, since no two of them offer
  # WebSockets in the same way; all of them one process, or one worker and a frontend.
  module SocketPeers
    CONFIGS = File.join(ROOT, "bench/peers")
    OPTIONS = %w[--no-dev --env production --quiet --access-log off --connections-max 20000 --workers 1].freeze

    PYTHON = "/usr/bin/python3"

    module_function

    def oribi(command, app, site)
      [{}, [File.join(ROOT, command), *OPTIONS, "--bind", "tcp://#{site.listen}?frontend=on", File.join(ROOT, "bench/apps", app)]]
    end

    # bench/load/sockets.c.
    def clients = Peers.compiled("sockets", "bench/load/sockets.c", "-lssl", "-lcrypto", "-lnghttp2")

    def config(name) = File.join(CONFIGS, name)

    LIST = [
      Peer.new("oribi-sockets", "Oribi (Rack)", :sockets, needs: [File.join(ROOT, "ruby/lib/oribi/oribi.so"), File.join(ROOT, "build/core/oribi-frontend")],
                                                          package: "make", command: ->(site) { oribi("ruby/exe/oribi", "sockets.ru", site) }),
      Peer.new("oribi-psgi-sockets", "Oribi (PSGI)", :sockets, needs: [File.join(ROOT, "perl/blib/arch"), File.join(ROOT, "build/core/oribi-frontend")],
                                                               package: "make", command: ->(site) { oribi("perl/bin/oribi-psgi", "sockets.psgi", site) }),
      Peer.new("iodine-sockets", "Iodine", :sockets, needs: ["iodine"], stop: :INT, version: -> { Gem::Specification.find_by_name("iodine").version.to_s },
                                                     command: lambda { |site|
                                                       [{}, ["iodine", "-b", site.host, "-p", site.port, "-t", 1, "-w", 1, config("sockets-iodine.ru")]]
                                                     }),
      Peer.new("node-ws", "node ws", :sockets, needs: ["node", "/usr/share/nodejs/ws/package.json"], version: %w[node --version],
                                               command: lambda { |site|
                                                 [{ "NODE_PATH" => "/usr/share/nodejs" }, ["node", config("sockets-node.js"), site.listen]]
                                               }),
      Peer.new("python-websockets", "Python websockets", :sockets, needs: [PYTHON, "/usr/lib/python3/dist-packages/websockets"],
                                                                   version: [PYTHON, "-c", "import websockets; print(websockets.__version__)"],
                                                                   lacks: %i[publish http],
                                                                   command: ->(site) { [{}, [PYTHON, config("sockets-python.py"), site.listen]] }),
      Peer.new("cable-puma", "Action Cable on Puma", :sockets, needs: ["puma", "gem:actioncable"], lacks: %i[publish plain_messages],
                                                               version: -> { Gem::Specification.find_by_name("actioncable").version.to_s },
                                                               command: lambda { |site|
                                                                 [{}, ["puma", "-q", "-t", "5:5", "-e", "production", "-b", "tcp://#{site.listen}",
                                                                       config("sockets-cable.ru")]]
                                                               }),
      Peer.new("bare-sockets", "bare write loop", :sockets_reference, needs: ["cc"], package: "script/setup run",
                                                                      command: ->(_) { raise "no server by itself" })
    ].freeze
  end
end

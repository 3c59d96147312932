# frozen_string_literal: true

# Harness of the end-to-end tests: real commands, raw sockets, strict reading of answers. Reading order: this file
# (suites), support/server.rb (a running command), support/processes.rb (facts about its processes), support/client.rb
# (a raw connection), support/response.rb (what came back).
#
#   E2E_COMMAND=oribi|oribi-psgi|pure  the command under test (default: oribi); pure: the server in Perl alone, for the
#                                      files of support/pure.rb
#   E2E_TRANSPORT=tcp|unix|frontend    each suite over this one; by far not all hold through a frontend
#   E2E_TRANSPORT=all              every suite over all of its transports
#
# A suite runs over tcp and over a unix socket, or over one of them if transports do not matter to it; it ends with
# checks of its own: the worker holds no more
# descriptors than at its start, no process is left, and no block of the core's memory.
require "minitest/autorun"
require "json"
require "digest/sha2" # else loaded by the first of several threads that need it, under the eyes of the others
require "fileutils"
require "socket"
require "time"
require "tmpdir"

require_relative "support/waiting"

# What gems of the machine would add to all tests, Rails for one, is not for ours, and takes longest to load.
def Minitest.load_plugins = nil

# Behind `nohup` or `&` these are ignored, by what is started here as well: Ctrl-C would end no other server.
%w[HUP INT QUIT].each { |signal| trap(signal, "DEFAULT") }

module E2E
  ROOT = File.expand_path("..", __dir__)
  COMMAND = ENV.fetch("E2E_COMMAND", "oribi")
  abort "E2E_COMMAND is oribi, oribi-psgi or pure, not #{COMMAND}" unless %w[oribi oribi-psgi pure].include?(COMMAND)
  RUBY = COMMAND == "oribi"

  # What Rack and PSGI want differently, and nothing else: [with oribi, with oribi-psgi].
  DIFFERENCES = {
    # Rack applications decode paths themselves, PSGI applications get them decoded.
    path_info_of_escaped_space: ["/env/a%20b", "/env/a b"],
    # What stands for the interface in the environment.
    url_scheme_key: ["rack.url_scheme", "psgi.url_scheme"],
    # REMOTE_ADDR of a client on a unix socket: Rails expects an address.
    unix_peer: ["127.0.0.1", nil],
    # Bad escapes travel raw in Rack; PATH_INFO cannot be decoded for PSGI.
    status_of_bad_escape: [200, 400],
    app: ["e2e/apps/app.ru", "e2e/apps/app.psgi"],
    app_extension: [".ru", ".psgi"],
    binary: ["ruby/exe/oribi", COMMAND == "pure" ? "e2e/support/pure" : "perl/bin/oribi-psgi"],
  }.freeze

  # Was the program of tls:// and ?frontend=on built?
  def self.frontend? = COMMAND != "pure" && File.executable?(File.join(ROOT, FRONTEND))
  FRONTEND = RUBY ? "ruby/lib/oribi/oribi-frontend" : "perl/blib/arch/auto/Oribi/oribi-frontend"

  def self.differing(name) = DIFFERENCES.fetch(name)[RUBY ? 0 : 1]

  ALL_TRANSPORTS = ENV["E2E_TRANSPORT"] == "all"
  # script/test --all and soaks take more rounds of what is left to chance.
  MORE_ROUNDS = ALL_TRANSPORTS || ENV.key?("ORIBI_SOAK")
  # Transports of a suite that asks for none: E2E_TRANSPORT=frontend has it run through a frontend.
  TRANSPORTS = !ALL_TRANSPORTS && ENV.key?("E2E_TRANSPORT") ? [ENV["E2E_TRANSPORT"].to_sym].freeze : %i[tcp unix].freeze
  # Of a suite whose subject is not how bytes come in: one of them, another with the other command.
  EITHER = ALL_TRANSPORTS || TRANSPORTS.size == 1 ? TRANSPORTS : [RUBY ? :tcp : :unix].freeze

  # Was the command under test built without Linux' own system calls (doc/platforms.md)? It says so itself.
  def self.portable?
    @layer ||= IO.popen([Server.binary, "--version"], &:read)[/^system calls: (\w+)$/, 1] || raise("#{Server.binary} --version names no system")
    @layer != "linux"
  end

  # Defines a suite: a test class for each transport, sharing one server started with `options`.
  def self.suite(name, options: [], transports: TRANSPORTS, env: {}, &block)
    transports.each do |transport|
      suite = Class.new(Case)
      suite.setup_suite(transport: transport, options: options, env: env)
      Object.const_set("#{name}_#{transport}_test".split("_").map(&:capitalize).join, suite)
      suite.class_eval(&block)
    end
  end
end

require_relative "support/response"
require_relative "support/client"
require_relative "support/server"
require_relative "support/gates"
require_relative "support/home"
require_relative "support/case"
require_relative "support/spec_cases"

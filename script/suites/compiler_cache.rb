# frozen_string_literal: true

require "rbconfig"

# The same sources are compiled for both bindings, for Debian's packages, for images and gems. Where ccache is installed
# each is compiled once for all that start with it here: CCACHE_DIR, build/ccache unless the environment has its own.
module CompilerCache
  COMPILERS = "/usr/lib/ccache" # links of the compilers' names to ccache, as Debian has them
  # Folders do not count: the core is copied into packages, and debugging information may name another copy.
  ENVIRONMENT = { "CCACHE_DIR" => File.join(ROOT, "build/ccache"), "CCACHE_BASEDIR" => "/", "CCACHE_NOHASHDIR" => "true",
                  "CCACHE_MAXSIZE" => "1G",
                  # To ccache a compiler of another name is another one: Ruby's and Perl's may not be called cc.
                  "CC" => RbConfig::CONFIG["CC"].split.first }.freeze

  def self.use
    return unless File.directory?(COMPILERS)

    ENV.update(ENVIRONMENT) { |_, own, _| own }
    ENV["PATH"] = "#{COMPILERS}:#{ENV.fetch("PATH")}" unless ENV.fetch("PATH").split(":").include?(COMPILERS)
  end
end

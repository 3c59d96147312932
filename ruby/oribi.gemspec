# frozen_string_literal: true

require_relative "lib/oribi/version"

Gem::Specification.new do |spec|
  spec.name = "oribi"
  spec.version = Oribi::VERSION
  spec.summary = "Pre-forking HTTP/1.1 application server for Rack"
  spec.description = "Serves Rack applications from forked workers. Parsing, framing, buffering, timeouts and writing happen in a C core that " \
                     "enters Ruby once per request; it needs no proxy in front and keeps connections alive."
  spec.authors = ["The Oribi authors"]
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  # ext/oribi/core, doc and man are there only while tools/package-gem builds the gem: core and doc live once, at the
  # top of the repository.
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "exe/*", "ext/oribi/*.{c,h,rb}", "ext/oribi/core/**/*", "man/*.[15]", "doc/**/*", "*.md", "LICENSE"].select { |path| File.file?(path) }
  end
  spec.bindir = "exe"
  spec.executables = ["oribi"]
  spec.extensions = ["ext/oribi/extconf.rb"]
  spec.require_paths = ["lib"]

  spec.add_dependency "rack", ">= 2.2", "< 4"
  # ri is made of these when the gem is installed, and all pages of doc/ take longer than the compiler.
  spec.extra_rdoc_files = Dir.chdir(__dir__) { Dir["README.md"] }
  spec.metadata = { "rubygems_mfa_required" => "true" }

  # RubyGems and Bundler show it behind the installation; extconf.rb tells what was left out, where somebody sees it.
  spec.post_install_message = "oribi --version tells which compression is built in, and whether TLS is."

  # The address of a public repository, where tools/package-gem finds the source tree to be a clone of one.
  if (address = ENV["ORIBI_REPOSITORY"].to_s.delete_suffix(".git")) != ""
    spec.homepage = address
    spec.metadata.merge!("source_code_uri" => address, "bug_tracker_uri" => "#{address}/issues", "changelog_uri" => "#{address}/blob/main/CHANGES.md",
                         "documentation_uri" => "#{address}/tree/main/doc")
  end
end

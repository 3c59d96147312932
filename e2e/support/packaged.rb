# frozen_string_literal: true

require "open3"

module E2E
  # The Debian packages of script/deb, and what differs between the two.
  module Packaged

    # example: the program of its example server; port: where that listens.
    Kind = Struct.new(:name, :config_extension, :example, :port, :extension, :library_variable, :folders, :own_files) do
      def config(server) = "etc/#{name}/#{server}.#{config_extension}"
      def library_folders(root) = folders.flat_map { |pattern| Dir[File.join(root, pattern)] }
    end

    KINDS = [
      Kind.new("oribi", "rb", "usr/share/oribi/example/config.ru", "9292", "oribi.so", "RUBYLIB",
               ["usr/lib/ruby/vendor_ruby", "usr/lib/*/ruby/vendor_ruby/*/"],
               ["usr/lib/ruby/vendor_ruby/oribi.rb", "usr/lib/ruby/vendor_ruby/rackup/handler/oribi.rb",
                "usr/lib/ruby/vendor_ruby/rack/handler/oribi.rb", "usr/share/man/man1/oribi.1.gz",
                "usr/share/man/man1/oribi-ctl.1.gz", "usr/share/man/man5/oribi.rb.5.gz"]),
      Kind.new("oribi-psgi", "pl", "usr/share/oribi-psgi/example/app.psgi", "9293", "Oribi.so", "PERL5LIB",
               ["usr/lib/*/perl5/*/"], ["usr/share/man/man1/oribi-psgi.1.gz", "usr/share/man/man1/oribi-psgi-ctl.1.gz",
                                       "usr/share/man/man5/oribi.pl.5.gz", "usr/share/man/man3/Oribi.3pm.gz"]),
    ].freeze

    KIND = KINDS.find { |kind| kind.name == COMMAND }

    module_function

    # What cannot be done here, and why; nil when all programs are there.
    def missing(programs)
      absent = programs.reject { |program, _| ENV.fetch("PATH").split(":").any? { |dir| File.executable?("#{dir}/#{program}") } }
      "no #{absent.keys.join(", ")} here (apt-get install #{absent.values.uniq.join(" ")})" if absent.any?
    end

    # name => path of the package.
    def build(*options)
      output, status = Open3.capture2e(File.join(ROOT, "script/deb"), *options)
      raise "script/deb: #{output}" unless status.success?

      output.lines(chomp: true).to_h { |path| [File.basename(path)[/\A[^_]+/], path] }
    end
  end
end

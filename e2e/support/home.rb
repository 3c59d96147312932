# frozen_string_literal: true

require "fileutils"
require "tmpdir"

module E2E
  # A folder for each test, @home, gone with it.
  module Home
    def setup
      super
      @home = File.realpath(Dir.mktmpdir("oribi-home"))
    end

    def teardown
      super
      FileUtils.remove_entry(@home)
    end

    # Writes a file below it, and gives its path.
    def file(path, text)
      File.join(@home, path).tap do |full|
        FileUtils.mkdir_p(File.dirname(full))
        File.write(full, text)
      end
    end
  end
end

# frozen_string_literal: true

module E2E
  # Load drivers in C, built when they are first wanted.
  module Native
    SHARED = Dir[File.join(ROOT, "bench/load/*.h")].freeze

    def self.build(source, binary, *flags)
      return if File.exist?(binary) && File.mtime(binary) > [source, *SHARED].map { |path| File.mtime(path) }.max

      FileUtils.mkdir_p(File.dirname(binary))
      partial = "#{binary}.#{Process.pid}" # two runs may build at once
      system(ENV.fetch("CC", "cc"), "-std=gnu11", "-O2", "-o", partial, source, *flags, exception: true)
      File.rename(partial, binary)
    end
  end
end

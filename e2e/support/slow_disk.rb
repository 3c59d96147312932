# frozen_string_literal: true

require_relative "native"

module E2E
  # A disk that is slow, full or stands still, for processes that are started with env (load/slow_disk.c): their files
  # without names in `dir`, and on the file system that it lies on.
  class SlowDisk
    SOURCE = File.join(ROOT, "e2e/load/slow_disk.c")
    LIBRARY = File.join(ROOT, "build/e2e/slow_disk.so")

    # What the processes share with load/slow_disk.c.
    class Plan
      WORDS = 255
      FIELDS = %i[held error delay_ms begun ended].freeze

      def initialize(path)
        @path = path
        File.binwrite(path, "\0" * (8 * WORDS))
      end

      FIELDS.each_with_index do |name, i|
        define_method(name) { File.binread(@path, 8, 8 * i).unpack1("Q") }
        define_method(:"#{name}=") { |value| File.open(@path, "r+b") { |file| file.pwrite([value].pack("Q"), 8 * i) } }
      end

      def threads = File.binread(@path).unpack("Q*").drop(FIELDS.size).reject(&:zero?)
    end

    attr_reader :plan

    def initialize(dir)
      @dir = dir
      @plan = Plan.new("#{dir}/plan")
      Native.build(SOURCE, LIBRARY, "-shared", "-fPIC", "-ldl")
    end

    def env
      { "LD_PRELOAD" => [ENV["LD_PRELOAD"], LIBRARY].compact.join(":"), "SLOW_DISK" => "#{@dir}/plan", "TMPDIR" => @dir }
    end
  end
end

# frozen_string_literal: true

require "fileutils"
require "json"

# The load driver and the perfect bank, compiled when first wanted.
module Isucon4
  HERE = __dir__
  ROOT = File.expand_path("../..", HERE)
  BUILD = File.join(ROOT, "build/bench")

  def self.driver = compile("driver", Dir[File.join(HERE, "driver/*.c")], "-lm")
  def self.perfect = compile("perfect", [File.join(HERE, "perfect/perfect.c")])

  # Renamed into place: two runs at once do not meet half a program.
  def self.compile(name, sources, *libraries)
    binary = File.join(BUILD, name)
    newest = Dir[File.join(HERE, "{driver,perfect}/*"), File.join(ROOT, "bench/load/http_client.h")].map { |path| File.mtime(path) }.max
    return binary if File.exist?(binary) && File.mtime(binary) > newest

    FileUtils.mkdir_p(BUILD)
    scratch = "#{binary}.#{Process.pid}"
    system("cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-o", scratch, *sources, *libraries) or raise "bench/isucon4: #{name} did not compile"
    File.rename(scratch, binary)
    binary
  end

  # Standard output, standard error, status. Whoever is interrupted takes the program along.
  def self.captured(argv)
    output, notes = Array.new(2) { IO.pipe }
    pid = spawn(*argv, in: File::NULL, out: output.last, err: notes.last)
    [output, notes].each { |pipe| pipe.last.close }
    said = Thread.new { notes.first.read }
    text = output.first.read
    _, status = Process.wait2(pid)
    pid = nil
    [text, said.value, status]
  ensure
    if pid
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    [*output, *notes].each { |io| io.close unless io.closed? }
  end

  # Runs the driver; gives its result, in which "notes" is what it said on the way. `wrap`: a command in front, such as
  # taskset.
  def self.drive(scenario, address, wrap: [], **options)
    words = options.compact.flat_map { |name, value| ["--#{name}", value.to_s] }
    output, notes, status = captured([*wrap, driver, scenario, address, *words])
    raise "the driver ended: #{notes.strip}" unless status.exited? && status.exitstatus < 2 && output.start_with?("{")

    JSON.parse(output, symbolize_names: true).merge(notes: notes.lines(chomp: true))
  end
end

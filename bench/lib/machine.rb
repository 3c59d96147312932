# frozen_string_literal: true

require "etc"
require_relative "peer"

module Bench
  # What the results were measured on, and with which versions.
  module Machine
    module_function

    def describe
      { processor: File.read("/proc/cpuinfo")[/^model name\s*:\s*(.+)$/, 1] || RUBY_PLATFORM, cores: Etc.nprocessors,
        memory_mb: File.read("/proc/meminfo")[/^MemTotal:\s+(\d+)/, 1].to_i / 1024, kernel: Etc.uname[:release], system: system_name,
        ruby: RUBY_VERSION, perl: `perl -e 'print substr $^V, 1'`, wrk: `wrk -v 2>&1`[/wrk (\S+)/, 1],
        load_before: File.read("/proc/loadavg").split.first.to_f, hypervisor: File.read("/proc/cpuinfo").match?(/^flags.*\bhypervisor\b/), commit: commit }
    end

    # The same in a line, for documents. described: of `describe`, now or back then. date: 2026-11-22.
    def line(described = describe, date = Time.now.utc.strftime("%Y-%m-%d"))
      versions = "Ruby #{described[:ruby]}, Perl #{described[:perl]}, Linux #{described[:kernel][/\A\d+\.\d+/]}"
      "#{described[:processor]}, #{described[:cores]} cores, #{versions}, #{date}"
    end

    def system_name = File.exist?("/etc/os-release") ? File.read("/etc/os-release")[/^PRETTY_NAME="?([^"\n]+)/, 1] : Etc.uname[:sysname]

    # The commit that was measured, marked when files differ from it.
    def commit
      return unless File.exist?(File.join(ROOT, ".git"))

      name = IO.popen(["git", "-C", ROOT, "rev-parse", "--short", "HEAD", err: File::NULL], &:read).strip
      changed = !IO.popen(["git", "-C", ROOT, "status", "--porcelain", "-uno", "--", ".", ":!bench/results", err: File::NULL], &:read).empty?
      changed ? "#{name}+" : name
    end
  end
end

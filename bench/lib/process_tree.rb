# frozen_string_literal: true

require "etc"

module Bench
  # A process and all that descend from it: processor time and memory, from /proc.
  class ProcessTree
    TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f
    Memory = Struct.new(:pid, :rss_mb, :pss_mb, :children, keyword_init: true)

    # Processor seconds of one process, to the nanosecond, from its clock (clock_getcpuclockid(3): ~pid << 3 |
    # CPUCLOCK_SCHED).
    def self.cpu_of(pid)
      Process.clock_gettime((~pid << 3) | 2)
    rescue Errno::EINVAL, Errno::ESRCH
      0.0
    end

    def initialize(pid) = @pid = pid

    def pids
      children = Hash.new { |hash, pid| hash[pid] = [] }
      Dir.each_child("/proc") { |name| name.match?(/\A\d+\z/) && (fields = stat(name)) && children[fields[1].to_i] << name.to_i }
      found = [@pid]
      found.each { |one| found.concat(children[one]) if children.key?(one) }
    end

    # Of the processes that live, by their clocks, and of children already reaped, in ticks (proc(5): cutime, cstime).
    def cpu_seconds = pids.sum { |pid| ProcessTree.cpu_of(pid) + (stat(pid)&.values_at(13, 14)&.sum(&:to_i) || 0) / TICKS }

    # One entry a process. PSS divides a page by the processes that share it: the sum is what the tree really takes.
    def memory
      all = pids
      all.filter_map do |pid|
        text = File.read("/proc/#{pid}/smaps_rollup")
        rss, pss = %w[Rss Pss].map { |word| text[/^#{word}:\s+(\d+) kB/, 1].to_i / 1024.0 }
        Memory.new(pid: pid, rss_mb: rss, pss_mb: pss, children: all.count { |other| stat(other)&.at(1).to_i == pid })
      rescue Errno::ENOENT, Errno::ESRCH
        nil
      end
    end

    # The processes that answer: those without children of their own, the main process only when it is alone.
    def workers = memory.select { |process| process.children.zero? }

    private

    # "pid (comm) state ppid ..." without the first two.
    def stat(pid)
      text = File.read("/proc/#{pid}/stat")
      text[(text.rindex(")") + 2)..].split
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end
  end
end

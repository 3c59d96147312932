# frozen_string_literal: true

module E2E
  # Watching a process's system calls with strace.
  module Tracing
    # Why it cannot be done here; nil when it can.
    def strace_refused
      output = IO.popen(["strace", "-qq", "-o", File::NULL, "true", { err: %i[child out] }], &:read)
      $?.success? ? nil : "strace: #{output.strip}"
    rescue Errno::ENOENT
      "no strace here"
    end

    def skip_without_strace
      refused = strace_refused
      skip refused if refused
    end

    # Lines of strace of the worker (or pid), all its threads, while the block runs.
    def traced(server = self.server, pid: worker)
      log = File.join(server.dir, "strace")
      tracer = spawn("strace", "-f", "-qq", "-o", log, "-p", pid.to_s, in: File::NULL, err: File::NULL)
      E2E.wait_until("strace to attach") { File.read("/proc/#{pid}/status")[/^TracerPid:\s+(\d+)/, 1].to_i == tracer }
      yield
      Process.kill(:INT, tracer)
      Process.wait(tracer)
      File.readlines(log).map(&:scrub)
    ensure
      FileUtils.rm_f(log)
    end

    def name_of(line) = line[/\A\d+\s+(\w+)\(/, 1]
  end
end

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
      E2E.wait_until("strace to attach") { attached?(tracer, pid) }
      yield
      Process.kill(:INT, tracer)
      Process.wait(tracer)
      File.readlines(log).map(&:scrub)
    ensure
      FileUtils.rm_f(log)
    end

    # Of each thread, and what it stood in when strace came has gone on: strace waits for the next call of any. Before
    # that a call may go by unseen.
    def attached?(tracer, pid)
      traced = Dir["/proc/#{pid}/task/*/status"].all? { |path| File.read(path)[/^TracerPid:\s+(\d+)/, 1].to_i == tracer }
      traced && Processes.asleep?(tracer) && Processes.asleep?(pid)
    rescue Errno::ENOENT, Errno::ESRCH
      false # a thread has just ended
    end

    def name_of(line) = line[/\A\d+\s+(\w+)\(/, 1]
  end
end

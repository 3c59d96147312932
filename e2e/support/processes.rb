# frozen_string_literal: true

module E2E
  # Facts about processes, from /proc; where there is none, as on macOS and FreeBSD, from ps and lsof.
  module Processes
    # What ps says of each process: pid, parent, group, state ("Z": it has ended), time on a processor, command.
    Row = Struct.new(:pid, :parent, :group, :state, :time, :command)

    module_function

    # "pid (comm) state ppid pgrp ..."; comm may hold blanks and parentheses. What is behind it: state, parent, group.
    def stat(pid)
      text = File.read("/proc/#{pid}/stat")
      text.rindex(")")&.then { |at| text[(at + 2)..].split } # empty while the process goes
    rescue Errno::ENOENT, Errno::ESRCH
      nil
    end

    def alive?(pid)
      state = stat(pid)&.first
      !state.nil? && state != "Z"
    end

    # Waits for something, with all its threads: one that only waits for a processor is not asleep.
    def asleep?(pid)
      Dir["/proc/#{pid}/task/*/stat"].all? { |path| File.read(path)[/.*\) (\S)/m, 1] == "S" }
    rescue Errno::ENOENT, Errno::ESRCH
      false # a thread has just ended
    end

    # Pids of all processes.
    def all = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i)

    # Their pids, with those of their parents.
    def parents = all.to_h { |pid| [pid, stat(pid)&.at(1).to_i] }

    def below(pid)
      tree = parents
      found = [pid]
      found.each { |one| found.concat(tree.filter_map { |child, parent| child if parent == one }) }
      found.drop(1)
    end

    # Those that live, of a process group.
    def in_group(group)
      all.select do |pid|
        state, _, its_group = stat(pid)
        its_group.to_i == group && state != "Z"
      end
    end

    # Whose standard error is this file, whoever their parents are.
    def writing_to(path)
      Dir.glob("/proc/[0-9]*/fd/2").filter_map do |link|
        link[/\d+/].to_i if File.readlink(link) == path
      rescue SystemCallError
        nil # it has ended
      end
    end

    def title(pid)
      File.read("/proc/#{pid}/cmdline").tr("\0", " ").strip
    rescue Errno::ENOENT, Errno::ESRCH
      ""
    end

    # Has the signal been sent to the process, and not been taken by it yet?
    def pending?(pid, signal)
      File.read("/proc/#{pid}/status").scan(/^S(?:ig|hd)Pnd:\s+(\h+)/).any? { |mask,| in_mask?(mask, signal) }
    rescue Errno::ENOENT, Errno::ESRCH
      false
    end

    # Open descriptors and what they point to.
    def descriptors(pid)
      Dir.children("/proc/#{pid}/fd").to_h do |fd|
        [fd, File.readlink("/proc/#{pid}/fd/#{fd}")]
      rescue Errno::ENOENT
        [fd, "closed meanwhile"]
      end
    end

    # How many sockets it has that are not of a file system. One that its peer has reset is in no list of connections.
    def sockets_but_unix(pid)
      local = File.readlines("/proc/#{pid}/net/unix").map { |line| line.split[6] }
      descriptors(pid).values.filter_map { |name| name[/\Asocket:\[(\d+)\]/, 1] }.count { |inode| !local.include?(inode) }
    end

    # User and system time in clock ticks, and the times it went to sleep: both stand still while a process sleeps.
    def activity(pid)
      fields = stat(pid) or return nil
      switches = File.read("/proc/#{pid}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1]
      [fields[11].to_i + fields[12].to_i, switches]
    rescue Errno::ENOENT, Errno::ESRCH # it has ended between the two looks
      nil
    end

    def kill(pid)
      Process.kill(:KILL, pid) if alive?(pid)
    rescue Errno::ESRCH
      nil
    end

    def in_mask?(mask, signal) = mask.hex[Signal.list.fetch(signal.to_s) - 1] == 1

    # The same without /proc.
    module ByCommands
      COLUMNS = %w[pid ppid pgid stat time command].flat_map { |name| ["-o", "#{name}="] }.freeze

      # All processes, or one.
      def rows(pid = nil)
        output = IO.popen(["ps", *(pid ? ["-p", pid.to_s] : ["-ax"]), "-ww", *COLUMNS, err: File::NULL], &:read).scrub
        output.lines.filter_map do |line|
          pid_text, parent, group, state, time, command = line.strip.split(" ", 6)
          Row.new(pid_text.to_i, parent.to_i, group.to_i, state, time, command.to_s) if time
        end
      end

      def stat(pid) = rows(pid).first&.then { |row| [row.state[0], row.parent.to_s, row.group.to_s] }
      def asleep?(pid) = rows(pid).all? { |row| row.state.match?(/\A[SI]/) }
      def all = rows.map(&:pid)
      def parents = rows.to_h { |row| [row.pid, row.parent] }
      def in_group(group) = rows.select { |row| row.group == group && row.state[0] != "Z" }.map(&:pid)
      def title(pid) = rows(pid).first&.command.to_s.strip
      def activity(pid) = rows(pid).first&.time
      def pending?(pid, signal) = in_mask?(IO.popen(["ps", "-p", pid.to_s, "-o", "pending=", { err: File::NULL }], &:read).strip, signal)

      # None, where there is no lsof.
      def descriptors(pid)
        fd = nil
        listed("-p", pid.to_s).each_with_object({}) do |line, found|
          fd = line[/\Af(\d+)/, 1] if line.start_with?("f")
          found[fd] = line[1..] if line.start_with?("n") && fd
        end
      end

      def writing_to(path) = listed("-a", "-d", "2", path).filter_map { |line| line[/\Ap(\d+)/, 1]&.to_i }

      # Lines of a letter and a value: p (process), f (descriptor), n (name).
      def listed(*words)
        IO.popen(["lsof", "-n", "-P", "-w", "-F", "pfn", *words, { err: File::NULL }], &:read).scrub.lines(chomp: true)
      rescue Errno::ENOENT
        []
      end
    end

    # E2E_PROCESSES=commands has them take over where there is a /proc as well.
    singleton_class.prepend(ByCommands) if ENV["E2E_PROCESSES"] == "commands" || !File.exist?("/proc/self/stat")
  end
end

#!/usr/bin/env ruby
# frozen_string_literal: true

# Workers that consume a queue in a folder: consumer.rb FOLDER. README.md tells how.
require "fileutils"
require "oribi/prefork"

# A file in new/ is a job. To rename it into work/ is to claim it, which only one worker can do; its result goes to
# done/.
class FolderQueue
  def initialize(folder)
    @new, @work, @done = %w[new work done].map { |name| File.join(folder, name) }
    FileUtils.mkdir_p([@new, @work, @done])
  end

  # @return [String, nil] name of a job that is ours now
  def claim
    Dir.children(@new).min(8).find do |name|
      File.rename(File.join(@new, name), claimed(name))
    rescue Errno::ENOENT # a sibling was faster
      false
    end
  end

  # The result is there before the claim goes, so that a job can be done twice, but not be lost.
  def done(name, result)
    part = "#{claimed(name)}.part"
    File.write(part, result)
    File.rename(part, File.join(@done, name))
    File.unlink(claimed(name))
  end

  def read(name) = File.read(claimed(name))

  # What workers had in their hands that are gone goes back into the queue.
  def recover
    Dir.children(@work).each do |file|
      pid, name = file.split(".", 2)
      next if alive?(pid.to_i)

      path = File.join(@work, file)
      name.end_with?(".part") ? File.unlink(path) : File.rename(path, File.join(@new, name))
    end
  end

  private

  def claimed(name) = File.join(@work, "#{Process.pid}.#{name}")

  def alive?(pid)
    Process.kill(0, pid)
  rescue Errno::ESRCH
    false
  end
end

# The work itself: takes a while, as work does.
def perform(text)
  sleep ENV.fetch("WORK_SECONDS", "0.1").to_f
  text.upcase
end

folder = ARGV.fetch(0) { abort "usage: consumer.rb FOLDER" }
queue = FolderQueue.new(folder)
queue.recover

manager = Oribi::Prefork.new(
  max_workers: 3,
  memory_max: "500M",
  pid_file: File.join(folder, "pid"), # locked: one manager for one folder
  control: File.join(folder, "control"),
  on_child_reap: ->(_manager, _pid, _status) { queue.recover }
)

until manager.signal_received == "TERM"
  manager.start do |worker|
    until worker.stopping?
      name = queue.claim
      if name
        worker.job(name) { queue.done(name, perform(queue.read(name))) }
      else
        worker.wait(0.2) # ends early when the worker is to stop
      end
    end
  end
end
manager.wait_all_children

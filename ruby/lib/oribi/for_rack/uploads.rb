# frozen_string_literal: true

require "tempfile"
require "tmpdir"

module Oribi
  module ForRack
    # Makes the files of one request's uploads: Tempfiles with the names that Rack gives them, since applications move
    # them and hand their paths to programs. They lie in a folder that the process has locked. The kernel gives the lock
    # back however the process ends, so what a killed process leaves is known: the first upload of every other process
    # removes the folders that none holds.
    class Uploads
      PREFIX = "oribi-uploads-"
      ATTEMPTS = 8
      EXTENSION_MAX = ::Rack.release.start_with?("3.0") ? nil : 128 # as Rack cuts it, which 3.0 does not

      @guard = Mutex.new

      class << self
        # @return [String] this process's folder. TMPDIR when no folder can be made there: then it is as with Rack
        def folder
          parent = Dir.tmpdir
          @guard.synchronize do
            @folder = make(parent) unless @pid == Process.pid && @parent == parent && File.directory?(@folder)
            @pid = Process.pid
            @parent = parent
            @folder
          end
        end

        # Removes the folders of processes that have ended.
        def sweep(parent = Dir.tmpdir)
          Dir.children(parent).each do |name|
            path = File.join(parent, name)
            remove(path) if name.start_with?(PREFIX) && File.lstat(path).then { |it| it.directory? && it.owned? }
          rescue SystemCallError
            next # another process was quicker, or has put something else there
          end
        end

        private

        def make(parent)
          sweep(parent)
          ATTEMPTS.times do
            path = Dir.mktmpdir(PREFIX, parent)
            return keep(path) if lock(path)
          end
          parent
        rescue SystemCallError
          parent
        end

        # False: another process has swept the folder before it was locked.
        def lock(path)
          @lock = File.open(path)
          @lock.flock(File::LOCK_EX)
          File.exist?(path)
        rescue Errno::ENOENT
          false
        end

        def keep(path)
          owner = Process.pid
          at_exit { empty(path) if Process.pid == owner }
          path
        end

        def remove(path)
          File.open(path) { |folder| empty(path) if folder.flock(File::LOCK_EX | File::LOCK_NB) }
        end

        def empty(path)
          Dir.each_child(path) { |name| File.unlink(File.join(path, name)) }
          Dir.rmdir(path)
        rescue SystemCallError
          nil # somebody has been there; the next process comes back to it
        end
      end

      # The parser that the files are made for.
      attr_writer :parser

      def initialize = @files = []

      # What Rack's parser calls for a file.
      def call(filename, _content_type)
        extension = File.extname(filename.gsub("\0", "%00"))[0..EXTENSION_MAX]
        Tempfile.new(["RackMultipart", extension], Uploads.folder).tap { |file| @files << file }
      end

      # Makes the Tempfile whose data comes next a file that holds all of that data and has no name.
      # @return [Boolean] false: what comes next is of no Tempfile of ours
      def adopt(file)
        tempfile = @parser.file
        return false unless tempfile && tempfile.equal?(@files.last)

        name = "#{tempfile.path}.new"
        if ForRack.link_to(file, name)
          File.rename(name, tempfile.path)
          tempfile.open # anew, by its path
          tempfile.binmode
        else
          IO.copy_stream(file, tempfile)
        end
        true
      end

      # The request was refused: nobody has seen its files.
      def discard = @files.each(&:close!)
    end
  end
end

# frozen_string_literal: true

require "tmpdir"

module Oribi
  # A file that was sent in a form. It lies on the disk without a name: it is gone when it is closed, collected, or its
  # process has ended.
  class Upload
    # What the client calls it, tagged as UTF-8: no path to be trusted. `basename` has none. A name in another charset
    # (`filename*`) that comes alone stays as it was sent.
    attr_reader :filename

    # The Content-Type that the client has sent, or nil: no more to be trusted.
    attr_reader :type

    # All fields of the part's head as they came, with their line ends.
    attr_reader :head

    # @return [File] open for reading and writing, at its beginning
    attr_reader :file
    alias tempfile file

    # @private
    def self.create(filename, type, head, dir)
      new(filename, type, head, nameless(dir || Dir.tmpdir))
    end

    # A file system without such files (NFS, FUSE) gets one that loses its name at once.
    def self.nameless(dir)
      File.new(dir, File::TMPFILE | File::RDWR | File::BINARY, 0o600)
    rescue Errno::EOPNOTSUPP, Errno::EISDIR, Errno::EINVAL
      path = File.join(dir, "oribi-upload-#{Process.pid}-#{Random.rand(1 << 64).to_s(16)}")
      File.new(path, File::CREAT | File::EXCL | File::RDWR | File::BINARY, 0o600).tap { File.unlink(path) }
    end
    private_class_method :nameless

    # @private The text of an extended parameter (RFC 8187): UTF-8''na%C3%AFve.txt; nil when it is none.
    def self.extended(value)
      return unless value&.valid_encoding?

      charset, _, text = value.split("'", 3)
      return unless text&.match?(/\A(?:[^%]|%\h\h)*\z/) && charset.match?(/\Autf-8\z/i)

      text = text.b.gsub(/%(\h\h)/) { $1.hex.chr }.force_encoding(Encoding::UTF_8)
      text if text.valid_encoding?
    end

    def initialize(filename, type, head, file)
      @filename = filename
      @type = type
      @head = head
      @file = file
      file.binmode
    end

    # The last part of the name, whichever system's folders stand before it.
    def basename = filename.scrub("?")[%r{[^/\\]*\z}]

    # @return [Integer] bytes
    def size = @file.size

    def read(...) = @file.read(...)
    def rewind = @file.rewind

    # For programs that want a path, as long as this process has the file open. Renaming it moves nothing: see #save.
    # Where there is no /proc, it is a name in /dev/fd, for this process alone.
    def path = File.exist?("/proc/self/fd") ? "/proc/#{Process.pid}/fd/#{@file.fileno}" : "/dev/fd/#{@file.fileno}"

    # Copies the file to `path`; file systems that can share the blocks do.
    #
    # @return [String] path
    # @raise [SystemCallError] Errno::EEXIST: never overwrites
    def save(path)
      File.open(path, File::WRONLY | File::CREAT | File::EXCL | File::BINARY) { |to| IO.copy_stream(@file, to, size, 0) }
      path
    end

    def close = @file.close

    def inspect = "#<#{self.class} #{filename.inspect} #{@file.closed? ? "closed" : "#{size} bytes"}>"
  end
end

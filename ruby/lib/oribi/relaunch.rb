# frozen_string_literal: true

require "fileutils"
require_relative "start_command"

module Oribi
  # What is to be different when rackup or `rails server` is run again, for a reload or an upgrade of the server it has
  # started: both write their pid file and go into the background before they call us, and neither may happen a second
  # time.
  #
  # Later processes get another pid file from the command line, FILE.launching. A mold removes it; a successor keeps it
  # under a name of its own, and gives it the launcher's name when it serves, in one step: the file always names a
  # server that is there.
  class Relaunch
    ASIDE = ".launching"
    DETACHING = %w[-D --daemonize --daemonize-noclose].freeze
    DETACHING_OF_RAILS = %w[-d --daemon].freeze # rackup's -d is another thing

    # @param settings [Hash] as the launcher gives them
    # @param words [Array<String>] of the command that was started
    def initialize(settings, words: StartCommand.current.words, rails: defined?(::Rails::Server))
      @name = settings[:pid]
      @detached = settings[:daemonize]
      @words = words
      @detaching = DETACHING + (rails ? DETACHING_OF_RAILS : [])
      @file = @name&.delete_suffix(ASIDE)
      @again = @name&.end_with?(ASIDE)
    end

    # @return [Array<String>] how to start later processes
    def command
      return @words if @again || @words.empty? || (@name.nil? && !@detached)

      words = @detached ? @words - @detaching : @words.dup
      @name ? words.push("-P", aside) : words
    end

    # In a process that was started again: nobody is to find the other file.
    def claim(mold:)
      return unless @again

      mold ? FileUtils.rm_f(aside) : File.rename(aside, own)
    rescue SystemCallError => e
      raise Error, "pid file #{aside}: #{Failure.reason(e)}"
    end

    # This server serves now; its predecessor is about to leave.
    def serving = @again && File.rename(own, @file)

    # In a worker, whose end runs the launcher's at_exit blocks as well: they find no file.
    def disown = @name && !@name.frozen? && @name.replace("#{own}.none")

    # The launcher removes its file at the end of the process, by the very String that it gave us. The file may be
    # another server's by now.
    def finish
      return unless @name

      FileUtils.rm_f(own)
      @name.replace(ours? ? @file : aside) unless @name.frozen?
    end

    private

    def aside = "#{@file}#{ASIDE}"
    def own = "#{@file}.#{Process.pid}"

    def ours?
      File.read(@file).to_i == Process.pid
    rescue SystemCallError
      false
    end
  end
end

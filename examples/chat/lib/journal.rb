# frozen_string_literal: true

require "fileutils"
require "json"

module Chat
  # What was said, one JSON object a line. The file is all that the workers share: who says something appends a line,
  # who listens looks whether the file has grown. A message's id is the place behind its line, so that a client can ask
  # for what came after.
  class Journal
    NICK_CHARS_MAX = 40
    TEXT_CHARS_MAX = 500
    TAIL_BYTES = 4096

    def initialize(path)
      @path = path
      FileUtils.mkdir_p(File.dirname(path))
      FileUtils.touch(path)
    end

    def size = File.size(@path)

    # Takes what a client sent; false if it is not a message.
    def add(text)
      said = JSON.parse(text)
      return false unless said.is_a?(Hash)

      nick = clean(said["nick"], NICK_CHARS_MAX)
      words = clean(said["text"], TEXT_CHARS_MAX)
      return false if nick.empty? || words.empty?

      # One write(2) in append mode: lines of several workers never mix.
      File.open(@path, File::WRONLY | File::APPEND) { |file| file.syswrite("#{JSON.generate(nick: nick, text: words, at: Time.now.to_i)}\n") }
      true
    rescue JSON::ParserError
      false
    end

    # [[id, JSON with that id], …] of the messages behind `place`.
    def after(place)
      bytes = File.binread(@path, nil, place).to_s.force_encoding(Encoding::UTF_8)
      bytes.lines.take_while { |line| line.end_with?("\n") }.map do |line|
        place += line.bytesize
        [place, "{\"id\":#{place},#{line.chomp.delete_prefix("{")}"]
      end
    end

    # Where the listener starts: behind the message that it has, or some messages before the end.
    def place_for(id)
      place = id.to_s.match?(/\A\d{1,15}\z/) ? id.to_i : 0
      return place if place.positive? && place <= size && (File.binread(@path, 1, place - 1) == "\n")

      from = [size - TAIL_BYTES, 0].max
      from.zero? ? 0 : from + File.binread(@path, TAIL_BYTES, from).index("\n") + 1
    end

    private

    def clean(value, max) = value.is_a?(String) ? value.scrub.strip[0, max] : ""
  end
end

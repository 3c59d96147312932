# frozen_string_literal: true

module E2E
  # One conformance case of spec/, whose README has the format: keys with their raw values, and what to send for it.
  class SpecCase
    SINGLE = { "r" => "\r", "n" => "\n", "t" => "\t", "0" => "\0", "s" => " ", "\\" => "\\" }.freeze
    ESCAPE = /\\\{(?<count>\d+)\*(?<unit>\\x\h{2}|\\[rnts0\\]|.)\}|\\(?:x(?<hex>\h{2})|(?<single>[rnts0\\]))/

    def self.unescape(text)
      text.b.gsub(ESCAPE) do
        match = $~
        next unescape(match[:unit]) * match[:count].to_i if match[:count]

        match[:hex] ? match[:hex].hex.chr : SINGLE.fetch(match[:single]).b
      end
    end

    def self.in(folder)
      paths = Dir["#{ROOT}/spec/#{folder}/*.case"].sort
      raise "no cases in #{ROOT}/spec/#{folder}" if paths.empty?

      paths.flat_map do |path|
        File.read(path).split(/\n{2,}/).filter_map do |paragraph|
          lines = paragraph.lines(chomp: true).grep_v(/\A#|\A\z/)
          new(folder, lines.map { |line| line.match(/\A([a-z_]+):(?: (.*))?\z/).captures }) unless lines.empty?
        end
      end
    end

    attr_reader :folder

    def initialize(folder, pairs)
      @folder = folder
      @pairs = pairs
    end

    def [](key) = @pairs.assoc(key)&.last
    def name = self["name"]
    def limits = raw("limit")
    def ok? = self["status"] == "ok"
    def again? = self["status"] == "again"
    def status = self["status"].to_i
    def raw(key) = @pairs.select { |one, _| one == key }.map { |_, value| value.to_s }
    def all(key) = raw(key).map { |value| SpecCase.unescape(value) }
    def joined(key) = all(key).join
    def input = joined("input")
    def rest = joined("rest")
    def head_request? = input.match?(/\A(?:\r\n)*HEAD /)

    # What the case is about and all that must stand before it.
    def bytes = folder == "chunked" ? "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n#{input}" : input

    # A request whose head alone is given is completed by the body it promises; nil when that is too much to send.
    def completed
      return bytes if folder == "chunked" || !rest.empty?

      case framing
      when "chunked" then "#{bytes}0\r\n\r\n"
      when /\Alength (\d+)/ then $1.to_i > 100_000 ? nil : bytes + "x" * $1.to_i
      else bytes
      end
    end

    # As the case says it, else from its fields, which are well-formed when it matters.
    def framing
      return self["framing"] if self["framing"]
      return "chunked" if input.match?(/^transfer-encoding:/i)

      length = input[/^content-length:[ \t]*(\d+)/i, 1]
      length ? "length #{length.to_i}" : "none"
    end

    def stays? = self["keep_alive"] != "no" && rest.empty? && !(input.match?(/ HTTP\/1\.0\r\n/) && self["keep_alive"] != "yes")
  end
end

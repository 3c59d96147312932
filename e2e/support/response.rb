# frozen_string_literal: true

module E2E
  # An answer, read as strictly as RFC 9112 allows: anything a lenient client would forgive is a Malformed error here.
  class Response
    Malformed = Class.new(StandardError)

    TOKEN = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/
    IMF_DATE = /\A(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d GMT\z/

    attr_reader :status, :reason, :fields, :framing, :interim
    attr_accessor :body

    # text: the head without its empty line. interim: the 1xx answers that came before.
    def initialize(text, interim: [])
      line, *fields = text.split("\r\n", -1)
      raise Malformed, "bare CR or LF in #{text.inspect}" if [line, *fields].any? { |one| one.match?(/[\r\n]/) }

      match = %r{\AHTTP/1\.1 (\d{3}) ([\t\x20-\x7e]*)\z}.match(line) or raise Malformed, "status line #{line.inspect}"
      @status = match[1].to_i
      @reason = match[2]
      @fields = fields.map { |field| parse_field(field) }
      @interim = interim
      @body = +"".b
    end

    def values(name) = fields.select { |field, _| field.casecmp?(name) }.map(&:last)
    def [](name) = values(name).then { |list| list.empty? ? nil : list.join(", ") }
    def interim? = status.between?(100, 199)
    def close? = self["connection"].to_s.downcase.split(/\s*,\s*/).include?("close")

    # How the body ends, after checking that the head leaves one answer to that: :none, :length, :chunked or :close.
    def frame(head_request)
      lengths = values("content-length")
      codings = values("transfer-encoding")
      raise Malformed, "both Content-Length and Transfer-Encoding" if lengths.any? && codings.any?
      raise Malformed, "Content-Length #{lengths.inspect}" if lengths.size > 1 || lengths.any? { |one| !one.match?(/\A\d+\z/) }
      raise Malformed, "Transfer-Encoding #{codings.inspect}" unless codings.empty? || codings == ["chunked"]

      bodiless = interim? || status == 204
      raise Malformed, "#{status} with #{(lengths + codings).inspect}" if bodiless && (lengths + codings).any?
      raise Malformed, "no Date" if !interim? && values("date").size != 1
      raise Malformed, "Date #{self["date"].inspect}" if !interim? && !self["date"].match?(IMF_DATE)

      @framing = if bodiless || status == 304 || head_request then :none
                 elsif codings.any? then :chunked
                 elsif lengths.any? then :length
                 else :close
                 end
      raise Malformed, "body until close without Connection: close" if @framing == :close && !close?

      @framing
    end

    private

    def parse_field(field)
      match = /\A(#{TOKEN}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\z/no.match(field) or raise Malformed, "field #{field.inspect}"
      [match[1], match[2]]
    end
  end
end

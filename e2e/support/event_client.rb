# frozen_string_literal: true

require "open3"
require_relative "client_socket"

module E2E
  # A client of server-sent events as the standard has it (WHATWG HTML, "Server-sent events"): over TCP or TLS by
  # itself, over HTTP/2 by curl. Does not come back by itself.
  class EventClient
    include ClientSocket

    Ended = Class.new(StandardError)
    Event = Struct.new(:type, :data, :id)

    attr_reader :status, :fields, :last_id, :retry_ms, :comments

    # tls: true, or a path of the authority's certificate for `http2`. last_id: what Last-Event-ID says.
    def initialize(port, path = "/events", tls: nil, http2: nil, last_id: nil, fields: {})
      @fields_sent = { "Accept" => "text/event-stream", "Last-Event-ID" => last_id }.merge(fields).compact
      @raw = +"".b
      @text = +"".b
      @body = +"".b
      @data = []
      @events = []
      @comments = 0
      http2 ? begin_curl(port, path, http2) : begin_socket(port, path, tls)
      read_head
    end

    def ok? = status == 200 && fields["content-type"] == "text/event-stream"

    # The next event; those without data have none.
    def event
      more while @events.empty?
      @events.shift
    end

    def data = event.data

    # Waits until the text has come, whatever it is: comments, an id alone.
    def await
      more until yield self
    end

    # Has the server ended the answer, as it should: with its last chunk, or the stream?
    def ended_well?
      more while true # rubocop:disable Style/InfiniteLoop
    rescue Ended
      @whole
    end

    def ended?
      ended_well?
      true
    end

    # A body that is no event stream.
    def body
      more while @body.bytesize < fields["content-length"].to_i
      @body
    end

    def close
      @curl ? Process.kill(:KILL, @curl.pid) : @tcp.close
    rescue SystemCallError, IOError
      nil # it was closed before
    end

    private

    def begin_socket(port, path, tls)
      @tcp, @io = open_socket(port, tls)
      @io.write("GET #{path} HTTP/1.1\r\nHost: localhost:#{port}\r\n#{@fields_sent.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
    end

    def begin_curl(port, path, how)
      words = @fields_sent.flat_map { |name, value| ["-H", "#{name}: #{value}"] }
      words += how == :plain ? ["--http2-prior-knowledge", "http://localhost:#{port}#{path}"] : ["--http2", "-k", "https://localhost:#{port}#{path}"]
      _, @io, @curl = Open3.popen2({ "LD_PRELOAD" => nil }, "curl", "-sN", "-i", *words)
      @tcp = @io
    end

    def read_head
      fill until (at = @raw.index("\r\n\r\n"))
      lines = @raw.slice!(0, at + 4).split("\r\n")
      @status = lines.shift.split[1].to_i
      @fields = lines.to_h { |line| line.split(": ", 2).then { |name, value| [name.downcase, value] } }
      @chunked = fields["transfer-encoding"] == "chunked"
      decode
    end

    def more
      raise Ended, "the answer has ended" if @whole

      fill
      decode
    end

    def decode
      unless @chunked
        take(@raw.slice!(0..))
        return
      end
      while !@whole && (at = @raw.index("\r\n"))
        size = @raw[0, at].to_i(16)
        return if @raw.bytesize < at + 2 + size + 2

        @raw.slice!(0, at + 2)
        take(@raw.slice!(0, size))
        @raw.slice!(0, 2)
        @whole = size.zero?
      end
    end

    def take(bytes)
      @body << bytes
      @text << bytes
      while (line = @text.slice!(/\A[^\r\n]*(?:\r\n|\n|\r(?!\z))/n))
        take_line(line.chomp.force_encoding(Encoding::UTF_8))
      end
    end

    def take_line(line)
      return dispatch if line.empty?
      return @comments += 1 if line.start_with?(":")

      name, value = line.split(":", 2)
      value = value.to_s.delete_prefix(" ")
      case name
      when "data" then @data << value
      when "event" then @type = value
      when "id" then @id = value
      when "retry" then @retry_ms = value.to_i
      end
    end

    def dispatch
      @last_id = @id if @id
      @events << Event.new(@type || "message", @data.join("\n"), @last_id) unless @data.empty?
      @data.clear
      @type = nil
    end

    def fill
      bytes = next_bytes(@io, @tcp)
      return @raw << bytes if bytes

      @whole = @curl.value.success? if @curl
      raise Ended, "the connection has ended"
    end
  end
end

# frozen_string_literal: true

require "support"

# The conformance cases of spec/ through a socket: what the application sees of a request, and what is answered where it
# must not see it. What has no shape at this end (minor versions, unfinished input, heads without a connection) is left
# to the C runner.
class SpecTest < BindingTest
  SINGLE = { "r" => "\r", "n" => "\n", "t" => "\t", "0" => "\0", "s" => " ", "\\" => "\\" }.freeze
  ONE = /\\(?:x(?<hex>[0-9a-f]{2})|(?<single>[rnts0\\]))/
  TOKEN = /\\\{(?<count>\d+)\*(?<unit>\\x[0-9a-f]{2}|\\[rnts0\\]|.)\}|#{ONE}/
  LIMITS = %w[target_bytes_max head_bytes_max fields_max body_bytes_max underscores_allow strict_target connect_allow].freeze

  def self.unescape(text)
    text.b.gsub(TOKEN) do
      match = $~
      next unescape(match[:unit]) * match[:count].to_i if match[:count]

      match[:hex] ? match[:hex].hex.chr : SINGLE.fetch(match[:single]).b
    end
  end

  # { "name" => ["..."], "input" => [...] } for each case of a file.
  def self.cases(path)
    File.read(path).split(/\n{2,}/).filter_map do |paragraph|
      pairs = paragraph.lines(chomp: true).reject { |line| line.start_with?("#") || line.empty? }.map { |line| line.match(/\A([a-z_]+):(?: (.*))?\z/).captures }
      pairs.group_by(&:first).transform_values { |values| values.map { |_, value| value.to_s } } unless pairs.empty?
    end
  end

  files = Dir[File.join(ROOT, "spec/{request,chunked}/*.case")]
  raise "no cases in #{ROOT}/spec" if files.empty?

  files.each do |path|
    folder = File.basename(File.dirname(path))
    define_method("test_#{folder}_#{File.basename(path, ".case")}") do
      ran = self.class.cases(path).group_by { |spec| spec["limit"] || [] }.sum { |limits, specs| run_cases(limits, specs, folder) }
      assert_operator ran, :>, 3
    end
  end

  # Cases with the same limits share a server. How many of them could be asked.
  def run_cases(limits, specs, folder)
    settings = limits.map(&:split)
    return 0 unless settings.all? { |name, _| LIMITS.include?(name) }

    askable = specs.reject { |spec| spec["status"] == ["again"] }
    seen = []
    app = lambda do |env|
      seen << [env.reject { |key, _| key.start_with?("rack.") }, env["rack.input"].read]
      text(["taken"])
    end
    capture_log do
      serve(app, lint: false, **settings.to_h { |name, value| [name.to_sym, value] }) do |client|
        askable.each { |spec| check(spec, ask(client, spec, folder, seen), seen.first) }
      end
    end
    askable.size
  rescue Oribi::Error
    0 # a limit that an operator may not set
  end

  # The status of the first answer, or nil.
  def ask(client, spec, folder, seen)
    client.reconnect
    seen.clear
    head = folder == "chunked" ? "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" : ""
    client.send_raw(head + input_of(spec))
    client.send_raw(body_for(spec)) if folder == "request"
    client.socket.close_write
    client.read_response(head: true).status
  rescue EOFError, Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  def input_of(spec) = spec.fetch("input").map { |line| self.class.unescape(line) }.join

  # Where the case ends with the head, the body it promises.
  def body_for(spec)
    return "" unless spec["status"] == ["ok"] && !spec.key?("rest")
    return "0\r\n\r\n" if input_of(spec).match?(/^transfer-encoding:/i)

    length = input_of(spec)[/^content-length:[ \t]*0*(\d{1,6})[ \t]*\r$/i, 1]
    "x" * length.to_i
  end

  def check(spec, status, seen)
    name = spec["name"].first
    if spec["status"] != ["ok"]
      assert_equal spec["status"].first.to_i, status, name
      assert_nil seen, "#{name}: reached the application"
      return
    end
    # a body too long to send
    return if status == 413 || seen.nil? && spec["framing"]&.first.to_s.match?(/\Alength \d{7,}/)

    assert_equal 200, status, name
    check_environment(name, spec, *seen)
  end

  def check_environment(name, spec, env, body)
    { "method" => "REQUEST_METHOD", "target" => "REQUEST_URI", "path" => "PATH_INFO", "query" => "QUERY_STRING" }.each do |key, variable|
      assert_equal self.class.unescape(spec[key].first), env[variable].b, "#{name}: #{variable}" if spec.key?(key)
    end
    assert_equal self.class.unescape(spec["body"].join), body, "#{name}: body" if spec.key?("body")
    (spec["field"] || []).each { |field| check_field(name, field, env) }
    check_trailers(name, spec, env) if spec.key?("trailers")
  end

  def check_trailers(name, spec, env)
    trailers = (spec["trailer"] || []).to_h { |field| field.split(/: |:\z/, 2).map { |part| self.class.unescape(part).to_s } }
    trailers.empty? ? assert_nil(env["oribi.trailers"], name) : assert_equal(trailers, env["oribi.trailers"], name)
    assert_equal ["HTTP_HOST"], env.keys.grep(/\AHTTP_/) - ["HTTP_VERSION"], name
  end

  def check_field(name, field, env)
    key, value = field.split(/: |:\z/, 2).map { |part| self.class.unescape(part) }
    return if key.casecmp?("transfer-encoding") || key.casecmp?("version")

    variable = key.upcase.tr("-", "_")
    variable = "HTTP_#{variable}" unless %w[CONTENT_LENGTH CONTENT_TYPE].include?(variable)
    assert_equal value.to_s, env[variable]&.b, "#{name}: #{variable}"
  end

  # --- response/: what the application gives, through an application that gives it ---

  def test_response
    current = nil
    app = ->(_) { [code_of(current), headers_of(current), body_of(current)] }
    files = Dir[File.join(ROOT, "spec/response/*.case")].sort
    specs = files.flat_map { |path| self.class.cases(path) }.select { |spec| answerable?(spec) }
    assert_operator specs.size, :>, 100
    capture_log do
      serve(app, lint: false) do |client|
        specs.each do |spec|
          current = spec
          client.reconnect
          client.send_raw(request_of(spec))
          # Most bodies are not of interest, and some never end.
          spec.key?("body") ? check_framed(spec, client) : check_answer(spec, client.read_response(head: true))
        end
      end
    end
  end

  def answerable?(spec)
    return false unless spec["name"] && spec.key?("code") && %w[interim detached server limit].none? { |key| spec.key?(key) }
    return true if spec.key?("body")

    special = headers_of(spec).keys.any? { |header| header.start_with?("rack.") }
    spec["keep_alive"] != ["no"] && spec["minor"] != ["0"] && !special && (spec["body_len"]&.first || "-1").to_i < 1_000_000
  end

  # What is no number is given as text.
  def code_of(spec) = Integer(spec["code"].first, 10, exception: false) || self.class.unescape(spec["code"].first)

  def headers_of(spec)
    pairs = (spec["header"] || []).map { |header| header.split(/: |:\z/, 2).map { |part| self.class.unescape(part) } }
    pairs.map! { |name, value| [name, value.to_s] }
    pairs.concat((spec["undefined"] || []).map { |name| [self.class.unescape(name), nil] })
    pairs.group_by(&:first).transform_values { |values| values.map(&:last) }
  end

  def request_of(spec)
    method = spec["head"] == ["yes"] ? "HEAD" : "GET"
    spec["minor"] == ["0"] ? "#{method} / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" : "#{method} / HTTP/1.1\r\nHost: a\r\n\r\n"
  end

  # A body that the application has framed, and its content. A stream is given in pieces of a few bytes.
  def check_framed(spec, client)
    return check_cut(spec, client) if spec["status"] == ["cut"]

    response = client.read_response(head: spec["head"] == ["yes"])
    check_answer(spec, response)
    content = self.class.unescape(spec["content"].to_a.join)
    assert_equal content, response.body.b, spec["name"].first if spec["status"] == ["ok"]
  end

  # Nobody may take it for whole: a 500 where nothing had left, else a connection that ends early.
  def check_cut(spec, client)
    assert_equal 500, client.read_response.status, spec["name"].first
  rescue EOFError, NoMethodError
    assert_equal "", client.read_eof.to_s
  end

  def framed_body(spec)
    body = self.class.unescape(spec["body"].join)
    spec["stream"] == ["yes"] ? body.scan(/.{1,3}/mn).each : [body]
  end

  def body_of(spec)
    return framed_body(spec) if spec.key?("body")

    len = (spec["body_len"]&.first || "-1").to_i
    len.negative? ? ["x"].each : ["x" * len]
  end

  def check_answer(spec, response)
    name = spec["name"].first
    return assert_equal(500, response.status, name) if spec["status"] == ["error"]

    assert_equal self.class.unescape(spec["code"].first).strip.to_i, response.status, name
    return unless spec.key?("output")

    expected = self.class.unescape(spec["output"].join).split("\r\n").drop(1).reject { |line| line.start_with?("Date: Sun, 06 Nov 1994") }
    sent = response.fields.map { |field| field.join(": ").b }
    sent.reject! { |line| line.match?(/\ADate: .*\d{4}.* GMT\z/) && !expected.include?(line) }
    assert_equal expected.sort, sent.sort, name
  end
end

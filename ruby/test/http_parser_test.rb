# frozen_string_literal: true

require "support"
require "spec_cases"

# Oribi::HTTPParser: the cases of spec/ that are heads, and what only this language has.
class HTTPParserTest < BindingTest
  RESULTS = { "broken" => -1, "again" => -2, "incomplete" => -2 }.freeze
  GET = "GET / HTTP/1.0\r\nX-A: 1\r\n\r\n"
  RESPONSE = "HTTP/1.1 200 OK\r\nContent-Type: a\r\nX-A: 1\r\nx-a: 2\r\nX-A: 3\r\n\r\nbody"

  # The spec's verdict as a result: any status is one refusal.
  def self.result(spec, behind)
    spec.ok? ? spec.input.bytesize - behind : RESULTS.fetch(spec["status"], -1)
  end

  def self.pair(field) = field.split(/: |:\z/, 2).map { |part| SpecCase.unescape(part) }

  def parse(string, env = {}) = [Oribi::HTTPParser.parse_request(string, env), env]

  SpecCase.in("from_string").each do |spec|
    define_method("test_environment_#{spec["name"].tr(" ", "_")}") do
      length, env = parse(spec.input)
      assert_equal self.class.result(spec, spec.rest.bytesize), length
      assert_equal(spec.raw("field").to_h { |field| self.class.pair(field) }, env.transform_values(&:b))
    end
  end

  # Limits of the server, and what a server alone refuses, are no matter of the library.
  def test_requests_of_the_server_have_the_server_s_verdict
    specs = SpecCase.in("request").reject { |spec| spec["limit"] || %w[413 414].include?(spec["status"]) }
    assert_operator specs.size, :>, 200
    specs.each do |spec|
      next if spec["status"] == "501" && spec.input.start_with?("CONNECT ") || spec["status"] == "431"

      length, env = parse(spec.input)
      # "%" of a path, which Rack has as it came, is decoded here
      next assert_equal(-1, length, spec.name) if spec["path"]&.match?(/%(?!\h\h)/)

      assert_equal self.class.result(spec, spec.rest.bytesize), length, spec.name
      assert_empty env, spec.name unless length.positive?
      spec.raw("field").each { |field| check_field(spec, field, env) } if length.positive?
    end
  end

  def check_field(spec, field, env)
    name, value = self.class.pair(field)
    key = name.upcase.tr("-", "_")
    key = "HTTP_#{key}" unless %w[CONTENT_TYPE CONTENT_LENGTH].include?(key)
    assert_equal value.to_s, env[key]&.b, "#{spec.name}: #{key}"
  end

  SpecCase.in("response_head").reject { |spec| spec["limit"] }.each do |spec|
    define_method("test_response_#{spec["name"].tr(" ", "_")}") do
      length, minor, status, reason, headers = Oribi::HTTPParser.parse_response(spec.input, :pairs)
      next assert_equal([RESULTS.fetch(spec["status"], -1), nil], [length, minor]) unless spec.ok?

      assert_equal spec.input.bytesize - spec.rest.bytesize, length if spec["rest"]
      assert_equal spec["minor"].to_i, minor if spec["minor"]
      assert_equal spec["code"].to_i, status if spec["code"]
      assert_equal spec.joined("reason"), reason.b if spec["reason"]
      assert_equal spec.raw("field").map { |field| self.class.pair(field).then { |name, value| [name.downcase, value.to_s] } }, headers if spec["fields"]
    end
  end

  def test_headers_as_a_hash_as_pairs_or_not_at_all
    length = RESPONSE.bytesize - 4
    assert_equal [length, 1, 200, "OK", { "content-type" => "a", "x-a" => %w[1 2 3] }], Oribi::HTTPParser.parse_response(RESPONSE)
    pairs = [%w[content-type a], %w[x-a 1], %w[x-a 2], %w[x-a 3]]
    assert_equal [length, 1, 200, "OK", pairs], Oribi::HTTPParser.parse_response(RESPONSE, :pairs)
    assert_equal [length, 1, 200, "OK", nil], Oribi::HTTPParser.parse_response(RESPONSE, :none)
    assert_raises(ArgumentError) { Oribi::HTTPParser.parse_response(RESPONSE, :list) }
  end

  def test_special_headers_are_filled_in_place
    %i[hash pairs none].each do |form|
      special = { "x-a" => nil, "etag" => 7 }
      Oribi::HTTPParser.parse_response(RESPONSE, form, special)
      assert_equal({ "x-a" => "3", "etag" => 7 }, special)
    end
    assert_raises(FrozenError) { Oribi::HTTPParser.parse_response(RESPONSE, :none, {}.freeze) }
    assert_raises(TypeError) { Oribi::HTTPParser.parse_response(RESPONSE, :none, []) }
  end

  def test_other_entries_of_the_environment_stay_and_the_same_are_replaced
    length, env = parse(GET, { "rack.input" => 1, "HTTP_X_A" => "0" })
    assert_equal GET.bytesize, length
    assert_equal [1, "1", "/"], env.values_at("rack.input", "HTTP_X_A", "PATH_INFO")
  end

  def test_an_environment_is_not_touched_unless_the_head_is_good
    ["GET", "GET / HTTP/1.0\n\n", "GET /%zz HTTP/1.0\r\n\r\n"].each do |text|
      assert_equal({ "a" => 1 }, parse(text, { "a" => 1 }).last)
    end
  end

  def test_arguments_of_another_kind
    assert_raises(TypeError) { Oribi::HTTPParser.parse_request(nil, {}) }
    assert_raises(TypeError) { Oribi::HTTPParser.parse_request(GET, []) }
    assert_raises(FrozenError) { Oribi::HTTPParser.parse_request(GET, {}.freeze) }
    assert_raises(TypeError) { Oribi::HTTPParser.parse_response(1) }
  end

  def test_values_are_binary_and_the_applications_own
    _, env = parse("GET /%C3%A9 HTTP/1.0\r\nX-A: \u00e9\r\nCookie: a\r\nCookie: b\r\n\r\n")
    assert_equal Encoding::BINARY, env["PATH_INFO"].encoding
    assert_equal Encoding::BINARY, env["HTTP_X_A"].encoding
    env["HTTP_X_A"] << "more"
    env["HTTP_COOKIE"] << "more"
    assert_equal "a; bmore", env["HTTP_COOKIE"]
    assert env.keys.all?(&:frozen?)
  end

  def test_names_of_headers_are_utf8_and_frozen_in_each_form
    env = parse("GET / HTTP/1.0\r\nX-Unknown: 1\r\nHost: a\r\n\r\n").last
    special = { "x-a" => nil }
    hash = Oribi::HTTPParser.parse_response(RESPONSE, :hash, special)
    pairs = Oribi::HTTPParser.parse_response(RESPONSE, :pairs)
    names = [*env.keys, *hash.last.keys, *special.keys, *pairs.last.map(&:first)]
    assert_equal [[Encoding::UTF_8, true]], names.map { |name| [name.encoding, name.frozen?] }.uniq
    values = [hash[3], *hash.last.values.flatten, *special.values, *pairs.last.map(&:last)]
    assert_equal [[Encoding::BINARY, false]], values.map { |value| [value.encoding, value.frozen?] }.uniq
  end

  def test_most_fields_and_a_host_of_the_target
    fields = (1..128).map { |i| "X#{i}: #{i}\r\n" }.join
    length, env = parse("GET http://b/ HTTP/1.0\r\n#{fields}\r\n")
    assert_equal fields.bytesize + 26, length
    assert_equal [135, "b"], [env.size, env["HTTP_HOST"]]
  end

  def test_most_fields_and_one_more
    fields = (1..128).map { |i| "X#{i}: #{i}\r\n" }.join
    length, env = parse("GET / HTTP/1.0\r\n#{fields}\r\n")
    assert_equal fields.bytesize + 18, length
    assert_equal 134, env.size
    assert_equal "128", env["HTTP_X128"]
    assert_equal [-1, {}], parse("GET / HTTP/1.0\r\n#{fields}X: 1\r\n\r\n")
    assert_equal 128, Oribi::HTTPParser.parse_response("HTTP/1.1 200 OK\r\n#{fields}\r\n").last.size
    assert_equal(-1, Oribi::HTTPParser.parse_response("HTTP/1.1 200 OK\r\n#{fields}X: 1\r\n\r\n"))
  end

  def test_its_other_names
    assert_equal GET.bytesize, Oribi::HTTPParser.parse_http_request(GET, {})
    assert_equal [-1, -2], [Oribi::HTTPParser::BROKEN, Oribi::HTTPParser::INCOMPLETE]
  end

  def test_it_holds_while_the_collector_runs
    joined = "GET /%41 HTTP/1.0\r\n#{(1..60).map { |i| "X-#{i % 50}: #{"v" * i}\r\n" }.join}\r\n"
    GC.stress = true
    _, env = parse(joined)
    _, _, _, _, headers = Oribi::HTTPParser.parse_response(RESPONSE)
    GC.stress = false
    assert_equal "#{"v" * 1}, #{"v" * 51}", env["HTTP_X_1"]
    assert_equal %w[1 2 3], headers["x-a"]
  ensure
    GC.stress = false
  end
end

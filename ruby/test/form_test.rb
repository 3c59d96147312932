# frozen_string_literal: true

require "support"
require "json"
require "set"
require "spec_cases"

# Oribi::Form and Oribi::Cookie: the cases of spec/, their maxima, and side by side with the installed Rack on random
# input.
class FormTest < BindingTest
  ROUNDS = 4000
  SEED = 20_261_123

  def self.pairs(spec)
    bare = spec.joined("bare").split.map(&:to_i)
    spec.raw("field").each.with_index(1).map do |field, number|
      key, value = field.end_with?(":") && !field.include?(": ") ? [field.delete_suffix(":"), ""] : field.split(": ", 2)
      [utf8(SpecCase.unescape(key)), bare.include?(number) ? nil : utf8(SpecCase.unescape(value))]
    end
  end

  def self.utf8(text) = text.dup.force_encoding(Encoding::UTF_8)

  SpecCase.in("form").select { |spec| spec["as"] == "rack" }.each do |spec|
    define_method("test_spec_form_#{spec["name"].tr(" ", "_")}") do
      limits = spec.limits.to_h { |line| line.split.then { |name, number| [name.to_sym, number.to_i] } }
      input = spec.joined("input")
      next assert_status(spec["status"].to_i) { Oribi::Form.parse(input, **limits) } if spec["status"]

      assert_equal self.class.pairs(spec), Oribi::Form.parse(input, **limits)
    end
  end

  SpecCase.in("nested").each do |spec|
    define_method("test_spec_nested_#{spec["name"].tr(" ", "_")}") do
      input = spec.joined("input")
      next assert_status(spec["status"].to_i) { Oribi::Form.nested(input) } if spec["status"]

      assert_equal JSON.parse(self.class.utf8(spec.joined("json"))), Oribi::Form.nested(input)
    end
  end

  SpecCase.in("cookie").select { |spec| spec["as"] == "rack" }.each do |spec|
    define_method("test_spec_cookie_#{spec["name"].tr(" ", "_")}") do
      assert_equal self.class.pairs(spec).reverse.to_h, Oribi::Cookie.parse(spec.joined("input"))
    end
  end

  SpecCase.in("cookie").select { |spec| spec["style"] == "rack" }.each do |spec|
    define_method("test_spec_bake_#{spec["name"].tr(" ", "_")}") do
      texts = %w[value domain path expires max_age same_site].to_h { |key| [key.to_sym, spec[key] && spec.joined(key)] }
      flags = %w[secure http_only partitioned].to_h { |key| [key.to_sym, spec[key] == "yes"] }
      bake = -> { Oribi::Cookie.bake(spec.joined("key"), texts.merge(flags)) }
      next assert_raises(ArgumentError, &bake) if spec["status"]

      assert_equal spec.joined("output"), bake.call.b
    end
  end

  def assert_status(status, message = nil, &block)
    error = assert_raises(*[Oribi::Form::Error, message].compact, &block)
    assert_equal status, error.status
    refute_empty error.message
  end

  def test_nothing_is_no_pair
    assert_equal [], Oribi::Form.parse(nil)
    assert_equal({}, Oribi::Form.nested(""))
    assert_equal({}, Oribi::Cookie.parse(nil))
    assert_raises(TypeError) { Oribi::Form.parse(1) }
  end

  def test_texts_are_utf8_and_the_string_stays_as_it_was
    text = "a%C3%BC=%41&b[]=%E3%81%82".b.freeze
    Oribi::Form.parse(text).flatten.each { |part| assert_equal Encoding::UTF_8, part.encoding }
    assert_equal({ "aü" => "A", "b" => ["あ"] }, Oribi::Form.nested(text))
    assert_equal "a%C3%BC=%41&b[]=%E3%81%82", text
  end

  def test_semicolons_on_request
    assert_equal [["a", "1;b=2"]], Oribi::Form.parse("a=1;b=2")
    assert_equal [%w[a 1], %w[b 2]], Oribi::Form.parse("a=1;b=2", semicolon: true)
    assert_equal({ "a" => "1", "b" => "2" }, Oribi::Form.nested("a=1;b=2", semicolon: true))
  end

  def test_every_maximum_and_one_more
    assert_equal 65_536, Oribi::Form.parse("&a" * 65_536).size
    assert_status(413) { Oribi::Form.parse("&a" * 65_537) }
    assert_equal 2, Oribi::Form.parse("a&b", pairs_max: 2).size
    assert_status(413) { Oribi::Form.nested("a&b&c", pairs_max: 2) }
    assert_equal 3, Oribi::Form.nested("abc=1", key_bytes_max: 3).keys.first.size
    assert_status(413) { Oribi::Form.nested("abcd=1", key_bytes_max: 3) }
    assert_equal 1, Oribi::Form.parse("abcd", bytes_max: 4).size
    assert_status(413) { Oribi::Form.parse("abcde", bytes_max: 4) }
    assert_equal %w[a], Oribi::Form.nested("a#{"[b]" * 31}=1").keys
    assert_status(413) { Oribi::Form.nested("a#{"[b]" * 32}=1") }
    assert_equal({ "a" => { "b" => "1" } }, Oribi::Form.nested("a[b]=1", depth_max: 2))
    assert_status(413) { Oribi::Form.nested("a[b]=1", depth_max: 1) }
    assert_raises(ArgumentError) { Oribi::Form.parse("a", pairs_max: -1) }
  end

  def test_maxima_of_cookies
    assert_equal 1, Oribi::Cookie.parse("=;" * 65_536).size
    assert_status(413) { Oribi::Cookie.parse("=;" * 65_537) }
    assert_equal 1, Oribi::Cookie.parse("a" * (1 << 20)).size
    assert_status(413) { Oribi::Cookie.parse("a" * ((1 << 20) + 1)) }
    assert_raises(ArgumentError) { Oribi::Cookie.bake("a", "b" * (1 << 20)) }
  end

  def test_what_is_built_is_read_again
    hash = { "a" => "1 &=%+ü", "b" => { "c" => %w[x y], "d" => { "e" => "" } }, "f" => nil, "g" => [{ "h" => "1", "i" => "2" }, { "h" => "3" }] }
    assert_equal hash, Oribi::Form.nested(Oribi::Form.build(hash))
    pairs = [["a", "1"], ["a", "2;"], ["", "x"], ["b", nil]]
    assert_equal "a=1&a=2%3B&=x&b", Oribi::Form.build(pairs)
    assert_equal pairs, Oribi::Form.parse(Oribi::Form.build(pairs))
    assert_equal "", Oribi::Form.build({})
    assert_equal "a=1&b=true", Oribi::Form.build(a: 1, b: true)
  end

  def test_options_of_cookies
    assert_equal "a=; path=/; secure; httponly; samesite=strict", Oribi::Cookie.bake(:a, value: nil, path: "/", secure: true, httponly: true, same_site: true)
    assert_equal "a=1; expires=Thu, 01 Jan 1970 00:00:00 GMT", Oribi::Cookie.bake("a", value: 1, expires: Time.at(0))
    assert_equal "a=1&b", Oribi::Cookie.bake("a", %w[1 b])
    assert_equal "a=1970-01-01+00%3A00%3A00+UTC", Oribi::Cookie.bake("a", Time.at(0).utc) # which has a to_a
    assert_raises(ArgumentError) { Oribi::Cookie.bake("a", value: 1, same_site: "Laxer") }
    assert_raises(ArgumentError) { Oribi::Cookie.bake("a", value: 1, expires: Time.at(1 << 40)) }
    assert_raises(ArgumentError) { Oribi::Cookie.bake("a\r\n", "1") }
  end

  def test_hostile_forms_end
    n = 100_000
    assert_equal n, Oribi::Form.nested(Array.new(n) { |i| "k#{i}=1" }.join("&"), pairs_max: n).size
    assert_equal n, Oribi::Form.nested("a[]=1&" * n, pairs_max: n)["a"].size
    assert_equal n, Oribi::Form.nested("a[][b]=1&" * n, pairs_max: n)["a"].size
    assert_equal [], Oribi::Form.parse("&" * n)
    assert_status(400) { Oribi::Form.parse("%" * n) }
    assert_status(413) { Oribi::Form.nested("a#{"[a]" * n}=1") }
    assert_status(413) { Oribi::Form.nested("a#{"[][a]" * n}=1") }
    assert_status(413) { Oribi::Form.nested("a[b][#{"[" * n}=1&c#{"[][]" * n}=1") }
  end

  def test_the_collector_may_come_at_any_time
    GC.stress = true
    form = Oribi::Form.nested("a[][b]=1%20&a[][b]=#{"v" * 50}+&c=#{"w" * 2000}%41")
    cookies = Oribi::Cookie.parse("a=#{"%41" * 30}; b=2")
    GC.stress = false
    assert_equal({ "a" => [{ "b" => "1 " }, { "b" => "#{"v" * 50} " }], "c" => "#{"w" * 2000}A" }, form)
    assert_equal({ "a" => "A" * 30, "b" => "2" }, cookies)
  ensure
    GC.stress = false
  end

  # --- beside Rack ---

  RACK_32 = Gem::Version.new(Rack.release) >= Gem::Version.new("3.2")

  def random_text(random, parts) = Array.new(random.rand(1..24)) { parts[random.rand(parts.size)] }.join.b

  # What both sides make of random texts; a symbol for an error.
  def side_by_side(parts, ours, theirs)
    skip "compared with Rack 3.2, and this is #{Rack.release}" unless RACK_32
    random = Random.new(SEED)
    kinds = Set.new
    ROUNDS.times do
      text = random_text(random, parts)
      want = begin
        theirs.call(text)
      rescue Rack::BadRequest
        :refused
      end
      got = begin
        ours.call(text)
      rescue Oribi::Form::Error
        :refused
      end
      kinds << (want == :refused)
      assert_equal want, got, text.inspect
    end
    kinds
  end

  def test_pairs_beside_rack
    kinds = side_by_side(["a", "b", "=", "&", ";", "+", "%41", "%c3%bc", "%", " ", "& ", "key=", "=value", "%0", "[", "\xff"],
                         ->(text) { Oribi::Form.parse(text) }, ->(text) { Rack::Utils.default_query_parser.parse_query_pairs(text) })
    assert_equal 2, kinds.size
  end

  def test_nested_beside_rack
    kinds = side_by_side(["a", "b", "[", "]", "[]", "[a]", "[b]", "=", "=1&", "=2&a", "&b", "&", "a[", "[][a]", "%5B", "%5D", "=3&a[]", "=4&a[][b]", "[][]"],
                         ->(text) { Oribi::Form.nested(text) }, ->(text) { Rack::Utils.parse_nested_query(text) })
    assert_equal 2, kinds.size
  end

  def test_cookies_beside_rack
    side_by_side(["a", "b", "=", ";", "; ", "+", "%41", "%c3%bc", "%", " ", "a=", "=1", "\"", ",", "&", "%zz"],
                 ->(text) { Oribi::Cookie.parse(text) }, ->(text) { Rack::Utils.parse_cookies_header(text) })
  end

  def test_building_beside_rack
    skip "compared with Rack 3.2, and this is #{Rack.release}" unless RACK_32
    (0..255).each_slice(16) do |bytes|
      text = bytes.pack("C*")
      assert_equal Rack::Utils.build_nested_query({ text => [text, { text => nil }] }), Oribi::Form.build({ text => [text, { text => nil }] })
      assert_equal Rack::Utils.set_cookie_header("a", text), Oribi::Cookie.bake("a", text)
    end
    options = { value: ["x y", "z"], domain: "a.example", path: "/p", max_age: 5, expires: Time.at(784_111_777), secure: true, http_only: true,
                same_site: :lax, partitioned: true }
    assert_equal Rack::Utils.set_cookie_header("name", options), Oribi::Cookie.bake("name", options)
  end
end

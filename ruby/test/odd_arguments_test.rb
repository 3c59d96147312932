# frozen_string_literal: true

require "support"
require "oribi/multipart"
require "date"
require "stringio"

# Oribi::Form, Oribi::Cookie and Oribi::Multipart: arguments and inputs that do other than usual, and hostile names of
# files.
class OddArgumentsTest < Minitest::Test
  TYPE = "multipart/form-data; boundary=b"
  BODY = "--b\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\n" \
         "content-disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n#{"data" * 10_000}\r\n--b--"

  # An input in which `read` is what the block makes of the StringIO and the arguments.
  class Input
    def initialize(text, &read)
      @io = StringIO.new(text)
      @read = read
    end

    def read(length, buffer) = @read.call(@io, length, buffer)
  end

  def parse(io = nil, **more, &read) = Oribi::Multipart.parse(io || Input.new(BODY, &read), TYPE, **more)

  def check(pairs)
    assert_equal ["a", "1"], pairs[0]
    assert_equal 40_000, pairs[1][1].size
    pairs[1][1].close
  end

  def refused(status) = assert_equal(status, assert_raises(Oribi::Form::Error) { yield }.status)

  def test_an_input_need_not_use_the_buffer
    check(parse { |io, length, _| io.read(length) })
    check(parse { |io, length, _| io.read(length)&.freeze })
    check(parse { |io, length, buffer| io.read([length, 7].min, buffer) })
    check(parse { |io, _, _| io.eof? ? nil : io.read })
  end

  def test_an_input_that_gives_nothing_has_ended
    refused(400) { parse { |_, _, _| "" } }
    refused(400) { parse { |_, _, buffer| buffer.clear } }
    assert_raises(TypeError) { parse { |_, _, _| 1 } }
    assert_raises(TypeError) { parse { |_, _, _| [] } }
  end

  def test_an_input_that_fails_leaves_no_file_open
    open = -> { Dir.children("/dev/fd").size }
    before = open.call
    error = assert_raises(IOError) { parse { |io, _, buffer| io.pos > 20_000 ? raise(IOError, "gone") : io.read(100, buffer) } }
    assert_equal "gone", error.message
    assert_equal before, open.call
  end

  # Files are written without the VM's lock: another thread parses meanwhile.
  def test_threads_may_read_one_string
    text = "--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n#{"data" * 500_000}\r\n--b--"
    io = -> { StringIO.new(text) }
    threads = Array.new(8) { |i| Thread.new { parse(i.even? ? text : io.call).first.last.tap(&:close).filename } }
    assert_equal ["f"] * 8, threads.map(&:value)
  end

  def name_of(given)
    upload = parse("--b\r\ncontent-disposition: form-data; name=f; #{given}\r\n\r\nx\r\n--b--").first.last
    [upload.filename, upload.basename, upload.inspect.valid_encoding?]
  ensure
    upload&.close
  end

  def test_names_of_files_in_no_charset
    assert_equal ["p", "p", true], name_of("filename=p; filename*=\xff")
    assert_equal ["p", "p", true], name_of("filename=p; filename*=utf-8''\xff")
    assert_equal ["p", "p", true], name_of("filename=p; filename*=\xff''a")
    assert_equal ["utf-8''\xff", "utf-8''?", true], name_of("filename*=utf-8''\xff")
    assert_equal ["iso-8859-1''..%2f%e4", "iso-8859-1''..%2f%e4", true], name_of("filename*=iso-8859-1''..%2f%e4")
    assert_equal ["", "", true], name_of("filename*=")
  end

  def test_maxima_are_not_negative
    %i[parts_max files_max part_head_max memory_max].each do |maximum|
      assert_raises(ArgumentError, maximum.to_s) { parse(BODY, maximum => -1) }
      assert_raises(TypeError, maximum.to_s) { parse(BODY, maximum => nil) }
    end
    assert_raises(RangeError) { parse(BODY, parts_max: 1 << 32) }
    %i[pairs_max key_bytes_max bytes_max depth_max].each { |maximum| assert_raises(ArgumentError) { Oribi::Form.nested("a", maximum => -1) } }
  end

  # A number's own code runs before the string is looked at.
  def test_a_maximum_may_be_an_object
    text = +"a=1&b=#{"2" * 5000}"
    maximum = Object.new
    maximum.define_singleton_method(:to_int) { text.replace("c=3") && 5 }
    assert_equal [%w[c 3]], Oribi::Form.parse(text, pairs_max: maximum)
    text.replace("a=1&b=#{"2" * 5000}")
    assert_equal({ "c" => "3" }, Oribi::Form.nested(text, pairs_max: maximum))
  end

  def test_when_a_cookie_expires
    date = Date.new(1994, 11, 6)
    assert_match(/; expires=\w{3}, \d\d Nov 1994 \d\d:\d\d:00 GMT\z/, Oribi::Cookie.bake("a", value: 1, expires: date))
    assert_equal "a=1; expires=Sun, 06 Nov 1994 08:49:37 GMT", Oribi::Cookie.bake("a", value: 1, expires: DateTime.new(1994, 11, 6, 8, 49, 37))
    assert_equal "a=1; expires=soon", Oribi::Cookie.bake("a", value: 1, expires: "soon")
    assert_equal "a=1", Oribi::Cookie.bake("a", value: 1, expires: false)
    assert_raises(ArgumentError) { Oribi::Cookie.bake("a", value: 1, expires: :soon) }
  end

  def test_compaction_may_come_at_any_time
    skip "this Ruby cannot compact" unless GC.respond_to?(:auto_compact=) && GC.compact
    begin
      GC.auto_compact = true
      3.times do
        check(parse { |io, _, buffer| GC.start || io.read(20_000, buffer) })
        assert_equal({ "a" => [{ "b" => "1" }] }, Oribi::Form.nested("a[][b]=1"))
      end
    ensure
      GC.auto_compact = false
    end
  end
end

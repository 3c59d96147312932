# frozen_string_literal: true

require "oribi/multipart"
require "rack"
require "support"

# With multipart_stream: a long form is taken apart by the core, Oribi::Multipart takes the parts, and rack.input reads
# the whole body as ever.
class PartedInputTest < BindingTest
  TYPE = "multipart/form-data; boundary=b"
  BIG = Random.new(1).bytes(300_000).freeze
  SMALL = ("s" * 1000).freeze

  def part(name, content, filename = nil)
    file = "; filename=\"#{filename}\"" if filename
    "--b\r\nContent-Disposition: form-data; name=\"#{name}\"#{file}\r\n\r\n".b << content << "\r\n"
  end

  def body = part("title", "Holidays") << part("big", BIG, "big.bin") << part("small", SMALL, "s.bin") << part("end", "x" * 200) << "--b--\r\n"

  def told(body = self.body, type: TYPE, **settings, &app)
    result = nil
    serve(->(env) { text([app.call(env["rack.input"], env).inspect]) }, lint: false, multipart_stream: "on", **settings) do |client|
      result = client.post("/", body, { "Content-Type" => type })
    end
    result.status == 200 ? result.body : result.status
  end

  def same_files(pairs)
    pairs.map { |name, value| [name, value.is_a?(String) ? value.size : [value.filename, value.size, value.read.hash, value.file.pos]] }
  end

  def expected = [["title", 8], ["big", ["big.bin", BIG.size, BIG.hash, BIG.size]], ["small", ["s.bin", 1000, SMALL.b.hash, 1000]], ["end", 200]]

  def test_multipart_takes_the_parts
    given = told do |input, _|
      pairs = Oribi::Multipart.parse(input, TYPE)
      [input.class, same_files(pairs), input.class == input.dup.class]
    end
    assert_equal [Oribi::PartedInput, expected, false].inspect, given
  end

  # The file that the core has written is the upload's.
  def test_no_byte_of_a_large_file_is_copied
    skip "this system does not tell what a process writes" unless File.exist?("/proc/self/io")
    given = told do |input, _|
      before = File.read("/proc/self/io")[/^wchar: (\d+)/, 1].to_i
      Oribi::Multipart.parse(input, TYPE)
      File.read("/proc/self/io")[/^wchar: (\d+)/, 1].to_i - before < BIG.size / 2
    end
    assert_equal "true", given
  end

  def test_it_reads_as_a_file
    whole = body
    given = told do |input, env|
      same = [input.size, input.read == whole, input.read(1), input.rewind, input.gets, input.pos]
      input.rewind
      copy = StringIO.new
      IO.copy_stream(input, copy)
      same << (copy.string.b == whole) << input.binmode.equal?(input) << input.external_encoding << env["CONTENT_LENGTH"].to_i
      same << input.to_io.class << input.closed?
    end
    assert_equal [whole.bytesize, true, nil, 0, "--b\r\n", 5, true, true, Encoding::BINARY, whole.bytesize, File, false].inspect, given
  end

  def test_parsed_then_read_then_parsed
    whole = body
    given = told do |input, _|
      first = Oribi::Multipart.parse(input, TYPE)
      ended = input.read
      input.rewind
      all = input.read == whole
      input.rewind
      [ended, all, same_files(first) == same_files(Oribi::Multipart.parse(input, TYPE))]
    end
    assert_equal '["", true, true]', given
  end

  def test_parsed_twice_without_reading
    given = told do |input, _|
      first = Oribi::Multipart.parse(input, TYPE)
      input.rewind
      [first.size, same_files(Oribi::Multipart.parse(input, TYPE)) == expected, same_files(first) == expected]
    end
    assert_equal "[4, true, true]", given
  end

  def test_rack_parses_it
    given = told do |_, env|
      params = Rack::Request.new(env).POST
      [params["title"], params["big"][:tempfile].read == BIG, params["small"][:tempfile].read == SMALL, params["end"].size]
    end
    assert_equal '["Holidays", true, true, 200]', given
  end

  # A file's data may have what is a delimiter there.
  def test_parsed_at_another_boundary
    inner = "--c\r\nContent-Disposition: form-data; name=\"in\"\r\n\r\n#{"i" * 100_000}\r\n--c--"
    given = told("#{part("f", inner, "f")}--b--") do |input, _|
      Oribi::Multipart.parse(input, "multipart/form-data; boundary=c").map { |name, value| [name, value.size] }
    end
    assert_equal '[["in", 100000]]', given
  end

  def test_uploads_outlive_the_request_and_the_input_does_not
    kept = nil
    input = nil
    told { |given, _| [input = given, kept = Oribi::Multipart.parse(given, TYPE)].size }
    assert_equal expected, same_files(kept)
    assert_predicate input, :closed?
    assert_raises(IOError) { input.read }
  end

  def test_in_another_thread_and_fiber_and_child
    whole = body
    given = told do |input, _|
      thread = Thread.new { Oribi::Multipart.parse(input, TYPE).size }.value
      [thread, input.rewind, input.read == whole]
    end
    assert_equal "[4, 0, true]", given
    assert_equal("true", told { |input, _| Fiber.new { input.read == whole }.resume })
    forked = told do |input, _|
      Process.wait(fork { exit!(input.read == whole) })
      $?.success?
    end
    assert_equal "true", forked
  end

  def test_several_threads
    given = told(threads: 3) { |input, _| same_files(Oribi::Multipart.parse(input, TYPE)) }
    assert_equal expected.inspect, given
  end

  def test_a_file_field_without_a_file_and_a_part_without_a_name
    given = told(part("f", BIG, "") << part("a", "1") << "--b--") { |input, _| Oribi::Multipart.parse(input, TYPE) }
    assert_equal '[["a", "1"]]', given
    nameless = "--b\r\nContent-Disposition: form-data; filename=x\r\n\r\n".b << BIG << "\r\n--b--"
    given = told(nameless) do |input, _|
      status = assert_raises(Oribi::Form::Error) { Oribi::Multipart.parse(input, TYPE) }.status
      input.rewind
      [status, input.read == nameless]
    end
    assert_equal "[400, true]", given
  end

  def test_what_the_application_never_sees
    capture_log do
      assert_equal 400, told(body[0..-8]) { flunk }
      assert_equal 400, told(body.sub("\r\n--b\r\n", "\r\n--bogus\r\n")) { flunk }
      assert_equal 400, told(type: "multipart/form-data") { flunk }
      assert_equal 413, told((part("f", "x" * 600, "f") * 129) << part("f", BIG) << "--b--") { flunk }
    end
  end

  def test_what_stays_as_it_is
    assert_equal("Oribi::Input", told("#{part("a", "1")}--b--") { |input, _| input.class })
    assert_equal("File", told(type: "multipart/mixed; boundary=b", body_memory_max: "128K") { |input, _| input.class })
    assert_equal("Oribi::Input", told(multipart_stream: "off") { |input, _| input.class })
    assert_equal("File", told(multipart_stream: "off", body_memory_max: "128K") { |input, _| input.class })
  end
end

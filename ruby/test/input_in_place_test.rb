# frozen_string_literal: true

require "oribi/multipart"
require "support"

# rack.input of a body in memory: parsed where it lies in the core, copied when a method of StringIO needs it.
class InputInPlaceTest < BindingTest
  FORM = "name=value&list[]=1&list[]=2"
  TYPE = "multipart/form-data; boundary=b"

  def multipart(file = "x" * 1000)
    "--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nHolidays\r\n" \
      "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\n\r\n#{file}\r\n--b--"
  end

  # What the application gives for each body.
  def answers(*bodies, **options, &app)
    results = nil
    serve(->(env) { text([app.call(env["rack.input"]).inspect]) }, lint: false, **options) do |client|
      results = bodies.map { |body| client.post("/", body).body }
    end
    results
  end

  def test_every_method_of_a_string_io_is_there
    missing = StringIO.public_instance_methods - Oribi::Input.public_instance_methods
    assert_empty missing
  end

  def test_reading_all_at_once_and_again
    given = answers("abc") do |input|
      [input.size, input.read, input.read, input.read(1), input.rewind, input.read(nil), input.rewind, input.gets, input.pos]
    end
    assert_equal ['[3, "abc", "", nil, 0, "abc", 0, "abc", 3]'], given
  end

  def test_reading_in_pieces
    given = answers("abcdefgh") do |input|
      buffer = +"ü"
      pieces = [input.read(3), input.read(3, buffer).equal?(buffer), buffer.dup, buffer.encoding.to_s, input.read(0), input.read(3)]
      pieces << input.read(3) << input.read(0) << input.read(1, buffer) << buffer.dup << input.read(nil, buffer) << input.rewind << input.read(2)
      pieces << input.gets << (input.read(-1) rescue $!.class) << input.pos # rubocop:disable Style/RescueModifier
    end
    assert_equal ['["abc", true, "def", "ASCII-8BIT", "", "gh", nil, "", nil, "", "", 0, "ab", "cdefgh", ArgumentError, 8]'], given
  end

  def test_a_frozen_buffer_and_other_mistakes_are_as_with_a_string_io
    given = answers("abc") do |input|
      [["", -1], [1, "x".freeze], [1, 2], [1, nil, 3]].map do |args|
        [input, StringIO.new("abc")].map { |io| io.read(*args) rescue $!.class }.uniq.size # rubocop:disable Style/RescueModifier
      end
    end
    assert_equal ["[1, 1, 1, 1]"], given
  end

  # A copy of many megabytes at each request, for an application that has kept its input, is too much: a File would be
  # closed too.
  def test_only_a_small_body_that_was_not_read_is_copied_at_the_end
    inputs = []
    answers("x" * 131_072, "x" * 131_073, "") { |input| inputs << input }
    assert_equal 131_072, inputs.first.read.bytesize
    assert inputs[1].closed?
    assert_raises(IOError) { inputs[1].read }
  end

  def test_it_stands_at_the_end_for_other_methods_too
    given = answers("ab\ncd") { |input| [input.read, input.eof?, input.pos, input.rewind, input.each_line.to_a, input.binmode.equal?(input)] }
    assert_equal ['["ab\ncd", true, 5, 0, ["ab\n", "cd"], true]'.gsub("\n", "\\n")], given
  end

  def test_blocks_keywords_and_buffers_reach_the_string_io
    given = answers("ab\ncd\n") do |input|
      buffer = +""
      lines = []
      input.each_line(chomp: true) { |line| lines << line }
      input.rewind
      [lines, input.read(2, buffer), buffer, input.dup.class, input.string.bytesize, input.map(&:size)]
    end
    assert_equal ['[["ab", "cd"], "ab", "ab", StringIO, 6, [1, 3]]'], given
  end

  def test_a_closed_input
    given = answers("abc") do |input|
      input.close
      [input.closed?, (input.read rescue $!.class), (input.rewind rescue $!.class)] # rubocop:disable Style/RescueModifier
    end
    assert_equal ["[true, IOError, IOError]"], given
  end

  def test_forms_are_parsed_where_they_lie
    given = answers(FORM, "") do |input|
      parsed = [Oribi::Form.nested(input), Oribi::Form.parse(input)]
      input.rewind
      parsed << Oribi::Form.parse(input).size << input.read << (input.rewind && input.read)
    end
    assert_equal [[{ "name" => "value", "list" => %w[1 2] }, [], 3, "", FORM].inspect, [{}, [], 0, "", ""].inspect], given
  end

  # The client, in the same process, has one.
  def test_no_string_of_the_body_is_made
    marker = "in-place-#{Process.pid}="
    count = -> { ObjectSpace.each_object(String).count { |text| text.bytesize > 5000 && text.start_with?(marker) } }
    given = answers("#{marker}#{"v" * 5000}") do |input|
      parsed = [Oribi::Form.parse(input).size, count.call]
      input.rewind
      copy = input.read
      parsed << count.call << copy.size
    end
    assert_equal ["[1, 1, 2, #{marker.size + 5000}]"], given
  end

  def test_forms_from_a_file_and_from_an_input_that_was_read_in_part
    long = "a=#{"x" * 200_000}"
    given = answers("k=v", long) do |input|
      input.read(1)
      Oribi::Form.parse(input).map { |key, value| [key, value&.size] }
    end
    assert_equal ['[["", 1]]', '[["", 200000]]'], given
  end

  def test_multipart_in_memory_and_in_a_file
    given = answers(multipart, multipart("y" * 300_000), body_memory_max: "128K") do |input|
      pairs = Oribi::Multipart.parse(input, TYPE)
      [input.class, pairs.map { |name, value| [name, value.is_a?(String) ? value : value.size] }, input.read, input.rewind, input.read.bytesize]
    end
    assert_equal ["[Oribi::Input, [[\"title\", \"Holidays\"], [\"f\", 1000]], \"\", 0, #{multipart.bytesize}]",
                  "[File, [[\"title\", \"Holidays\"], [\"f\", 300000]], \"\", 0, #{multipart("y" * 300_000).bytesize}]"], given
  end

  # The call could end under it, so the bytes are copied first.
  def test_multipart_in_another_thread_and_fiber
    given = answers(multipart) do |input|
      here = Oribi::Multipart.parse(input, TYPE).size
      input.rewind
      thread = Thread.new { Oribi::Multipart.parse(input, TYPE).size }.value
      input.rewind
      [here, thread, Fiber.new { Oribi::Multipart.parse(input, TYPE).size }.resume]
    end
    assert_equal ["[2, 2, 2]"], given
  end

  def test_a_malformed_body_leaves_the_input_usable
    given = answers(multipart[0..-5]) do |input|
      error = assert_raises(Oribi::Form::Error) { Oribi::Multipart.parse(input, TYPE) }
      [error.status, input.rewind, input.read.bytesize]
    end
    assert_equal ["[400, 0, #{multipart.bytesize - 4}]"], given
  end

  def test_after_the_request_what_nobody_read_is_a_copy_and_the_rest_is_closed
    inputs = []
    app = lambda do |env|
      inputs << env["rack.input"]
      Oribi::Form.parse(env["rack.input"]) if env["PATH_INFO"] == "/parsed"
      text(["ok"])
    end
    serve(app, lint: false) do |client|
      client.post("/", "kept")
      client.post("/parsed", "a=b")
      client.post("/", "other")
    end
    assert_equal "kept", inputs[0].read
    assert_predicate inputs[1], :closed?
    assert_raises(IOError) { inputs[1].rewind }
    assert_raises(IOError) { Oribi::Form.parse(inputs[1]) }
    assert_equal "other", inputs[2].string
  end

  def test_a_streamed_answer_reads_while_it_is_sent
    body = Class.new do
      def initialize(input) = @input = input

      def each
        @input.rewind
        yield @input.read
      end
    end
    app = lambda do |env|
      Oribi::Form.parse(env["rack.input"])
      [200, {}, body.new(env["rack.input"])]
    end
    serve(app, lint: false) { |client| assert_equal FORM, client.post("/", FORM).body }
  end

  def test_a_child_of_the_application_has_the_bytes
    given = answers("forked") do |input|
      reader, writer = IO.pipe
      pid = fork do
        writer << input.read
        writer.close
        exit!(true)
      end
      writer.close
      Process.wait(pid)
      reader.read
    end
    assert_equal ['"forked"'], given
  end
end

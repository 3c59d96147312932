# frozen_string_literal: true

require "support"
require "oribi/rack"

# oribi/rack with multipart_stream: the Tempfiles of a form that the core has taken apart are the core's files, and all
# else is what Rack makes of the whole body.
class ForRackPartedTest < BindingTest
  TYPE = "multipart/form-data; boundary=b"
  BIG = Random.new(1).bytes(300_000).freeze
  SMALL = ("s" * 1000).freeze

  def part(name, content, disposition = "", type = nil)
    "--b\r\nContent-Disposition: form-data; name=\"#{name}\"#{disposition}\r\n#{"Content-Type: #{type}\r\n" if type}\r\n".b << content.b << "\r\n"
  end

  def file(name, content, filename = "#{name}.bin") = part(name, content, "; filename=\"#{filename}\"", "application/octet-stream")
  def body(*parts) = "#{parts.join}--b--\r\n".b

  # Where nobody tells, nothing is said of what was copied.
  def written = File.exist?("/proc/self/io") ? File.read("/proc/self/io")[/^wchar: (\d+)/, 1].to_i : 0

  # Parameters as text: what a Tempfile is, and all it holds.
  def told(value)
    case value
    when Hash then value.to_h { |key, one| [key, told(one)] }
    when Array then value.map { |one| told(one) }
    when Tempfile then [value.pos, value.size, value.read.hash, value.external_encoding, File.size(value.path), File.stat(value.path).mode & 0o777]
    else value
    end
  end

  # Parameters as text, or the exception.
  def outcome(env)
    told(Rack::Request.new(env).POST).inspect
  rescue StandardError => e
    "#{e.class}: #{e.message}"
  end

  def as_read_whole(body, type)
    outcome({ "REQUEST_METHOD" => "POST", "CONTENT_TYPE" => type, "CONTENT_LENGTH" => body.bytesize.to_s, "rack.input" => StringIO.new(body),
                                 "QUERY_STRING" => "" })
  end

  # Gives what the application gave, and how many bytes were written meanwhile.
  def served(body, type: TYPE, **settings, &app)
    app ||= ->(env) { outcome(env) }
    handler = lambda do |env|
      before = written
      given = app.call(env)
      text([[given, written - before].inspect])
    end
    serve(handler, lint: false, multipart_stream: "on", **settings) { |client| return client.post("/", body, { "Content-Type" => type }).body }
  end

  def assert_as_rack_has_it(body, copies: false, type: TYPE, **settings)
    expected = as_read_whole(body, type)
    given = served(body, type: type, **settings)
    assert given.b.start_with?("[#{expected.inspect}, ".b), "#{given.b[0, 2000]}\ninstead of\n#{expected.inspect.b[0, 2000]}"
    bytes = given[/, (\d+)\]\z/, 1].to_i
    return if Oribi::Core.layer != "linux" # elsewhere a file that has no name gets none: Rack's file is a copy

    copies ? assert_operator(bytes, :>=, BIG.size) : assert_operator(bytes, :<, BIG.size / 2)
  end

  def test_files_are_the_cores
    assert_as_rack_has_it(body(part("title", "Holidays"), file("big", BIG), file("small", SMALL), part("end", "x" * 200)))
    assert_as_rack_has_it(body(file("a[]", BIG), file("a[]", BIG.reverse), part("b[c]", "ä")))
    assert_as_rack_has_it(body(file("only", BIG)))
    assert_as_rack_has_it(body(file("none", BIG, ""), part("x", "1")))
  end

  def test_more_files_than_have_one_of_their_own
    files = (1..18).map { |i| file("f#{i}", BIG[0, 70_000] + i.to_s) }
    assert_as_rack_has_it(body(*files))
  end

  # The frame itself lies in a file.
  def test_many_fields_beside_the_file
    fields = (1..300).map { |i| part("field#{i}", "v" * 500) }
    assert_as_rack_has_it(body(*fields[0, 200], file("big", BIG), *fields[200..]), body_memory_max: "16K")
  end

  def test_the_body_is_read_as_ever
    whole = body(file("big", BIG), part("x", "1"))
    given = served(whole) do |env|
      request = Rack::Request.new(env)
      size = request.POST["big"][:tempfile].size
      input = env["rack.input"]
      first = RACK3 ? input.read : ""
      input.rewind
      [size, first, input.read == whole, request.POST["x"]]
    end
    assert given.start_with?("[[#{BIG.size}, \"\", true, \"1\"], "), given[0, 200]
  end

  # They have names, as applications want them, and go as Tempfiles do.
  def test_files_can_be_moved
    Dir.mktmpdir do |dir|
      given = served(body(file("big", BIG))) do |env|
        tempfile = Rack::Request.new(env).POST["big"][:tempfile]
        path = tempfile.path
        FileUtils.mv(path, "#{dir}/moved")
        tempfile << "more"
        tempfile.close!
        [File.exist?(path), File.basename(path).start_with?("RackMultipart"), File.dirname(path).include?("oribi-uploads-")]
      end
      assert given.start_with?("[[false, true, true], "), given
      assert_equal "more#{BIG.byteslice(4..)}".b, File.binread("#{dir}/moved")
    end
  end

  # Rack reads the whole body: another boundary than the server's, a factory of one's own.
  def test_what_is_read_from_the_body
    whole = body(file("big", BIG), part("x", "1"))
    given = served(whole) { |env| outcome(env.merge("CONTENT_TYPE" => "multipart/form-data; boundary=c")) }
    assert_match(/EOFError|EmptyContentError|Error/, given)
    given = served(whole) do |env|
      Rack::Request.new(env.merge("rack.multipart.tempfile_factory" => ->(_name, _type) { StringIO.new })).POST["big"][:tempfile].string == BIG
    end
    assert given.start_with?("[true, "), given
  end

  def test_a_refused_form_leaves_no_file
    files = -> { Dir["#{Dir.tmpdir}/oribi-uploads-*/*"].sort }
    whole = body(file("big", BIG), part("a", "1"), part("b", "2"))
    given = served(whole) do |env|
      limit = Rack::Utils.multipart_total_part_limit
      Rack::Utils.multipart_total_part_limit = 2
      before = files.call
      [(Rack::Request.new(env).POST rescue $!.class.name), files.call - before]
    ensure
      Rack::Utils.multipart_total_part_limit = limit
    end
    assert given.start_with?('[["Rack::Multipart::MultipartTotalPartLimitError", []], '), given
  end

  DISPOSITIONS = ['; filename="a.txt"', "; filename=a.txt", "; filename*=UTF-8''%e2%82%ac.txt", '; filename=""',
                  '; filename="C:\\dir\\f"', '; filename="a\\"b"',
                  "; filename=\"%41.txt\"", "; filename=\"x\r\n y\"", "", '; FileName="b"', "; filename=x; filename*=utf-8''y"].freeze
  TYPES = [nil, "text/plain", "text/plain; charset=iso-8859-1", "application/octet-stream"].freeze
  NAMES = ["a", "a[]", "b[c]", "b[d][]", "x y", ""].freeze
  SIZES = [0, 10, 1000, 66_000, 200_000].freeze
  FORMS = Integer(ENV.fetch("FORMS", "60"), 10)

  # Random forms, each read both ways by one application.
  def test_side_by_side
    random = Random.new(17)
    same = lambda do |env|
      given = outcome(env)
      input = env["rack.input"]
      parted = input.is_a?(Oribi::PartedInput)
      input.rewind
      expected = as_read_whole(input.read.b, TYPE)
      text([given == expected ? "same #{parted}" : "#{given}\ninstead of\n#{expected}"])
    end
    answers = []
    serve(same, lint: false, multipart_stream: "on", body_memory_max: "16K") do |client|
      FORMS.times do
        parts = Array.new(random.rand(1..6)) do
          part(NAMES.sample(random: random), random.bytes(SIZES.sample(random: random)), DISPOSITIONS.sample(random: random), TYPES.sample(random: random))
        end
        answers << client.post("/", body(*parts), { "Content-Type" => TYPE })
      end
    end
    answers.each { |answer| assert_match(/\Asame|\A5/, answer.status == 200 ? answer.body : answer.status.to_s, answer.body[0, 3000]) }
    assert_operator answers.count { |answer| answer.body == "same true" }, :>, FORMS / 2
  end

  def test_all_of_this_with_rack_2
    return unless RACK3

    output, status = with_rack2(__FILE__)
    assert status.success?, output
    assert_match(/ 0 failures, 0 errors, 0 skips/, output)
  end
end

# frozen_string_literal: true

require "support"
require "oribi/multipart"
require "stringio"
require "tmpdir"
require "spec_cases"

# Oribi::Multipart and Oribi::Upload. The grammar's cases are in spec/multipart.
class MultipartTest < Minitest::Test
  TYPE = "multipart/form-data; boundary=b"

  # An input that gives a byte at a time, whatever it is asked for.
  class Bytewise
    def initialize(text) = @io = StringIO.new(text)
    def read(_length, buffer) = @io.read(1, buffer)
  end

  def parse(body, type = TYPE, **more) = Oribi::Multipart.parse(body, type, **more)

  def part(head, body = "x") = "--b\r\n#{head}\r\n\r\n#{body}\r\n"
  def field(name, body = "x") = part("Content-Disposition: form-data; name=\"#{name}\"", body)
  def file(body, name = "f") = part("Content-Disposition: form-data; name=\"#{name}\"; filename=\"#{name}.bin\"", body)

  def refused(status, message = nil)
    error = assert_raises(Oribi::Form::Error) { yield }
    assert_equal status, error.status
    assert_equal message, error.message if message
  end

  # What spec/ writes down of a part, as this interface has it; nil: it is a mistake here.
  def expected(line)
    return unless line.start_with?("name=")

    %w[name filename filename* body].to_h { |key| [key, line[/(?:\A| )#{Regexp.escape(key)}="(.*?)"(?= \w+\*?="|\n\z)/mn, 1]] }
  end

  def check_parts(spec, pairs)
    parts = spec.all("parts").reject(&:empty?).map { |line| expected(line) }
    parts.reject! { |part| part["filename"] == "" }
    assert_equal parts.map { |part| part["name"].gsub(/\\(["\\])/n, "\\1") }, pairs.map { |name, _| name.b }, spec.name
    assert_equal(parts.map { |part| part["body"] }, pairs.map { |_, value| value.is_a?(Oribi::Upload) ? value.read : value.b }, spec.name)
  end

  def test_the_cases_of_spec
    cases = SpecCase.in("multipart").reject { |spec| spec["longer"] }
    assert_operator cases.size, :>, 30
    cases.each do |spec|
      type = "multipart/form-data; boundary=\"#{spec.joined("boundary")}\""
      [spec.input, StringIO.new(spec.input), Bytewise.new(spec.input)].each do |body|
        if spec.ok? && spec.all("parts").reject(&:empty?).all? { |line| expected(line) }
          check_parts(spec, parse(body, type))
        else
          refused(spec["status"] == "head" ? 413 : 400) { parse(body, type) }
        end
      end
    end
  end

  def test_pairs_in_their_order
    pairs = parse("#{field("a", "1")}#{file("\xff\0\r\n")}#{field("a", "ä")}--b--")
    assert_equal ["a", "1"], pairs[0]
    assert_equal ["a", "ä"], pairs[2]
    assert_equal [Encoding::UTF_8] * 3, [pairs[0][0].encoding, pairs[0][1].encoding, pairs[1][0].encoding]
    upload = pairs[1][1]
    assert_equal ["f.bin", nil, 4, "\xff\0\r\n".b], [upload.filename, upload.type, upload.size, upload.read]
    assert_equal Encoding::BINARY, upload.tap(&:rewind).read.encoding
  end

  def test_text_has_the_charset_of_its_part
    latin = part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=ISO-8859-1", "\xe4".b)
    odd = part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=x-nobody", "\xe4".b)
    values = parse("#{latin}#{odd}--b--".b).map(&:last)
    assert_equal [Encoding::ISO_8859_1, Encoding::BINARY], values.map(&:encoding)
    assert_equal "ä", values.first.encode("UTF-8")
  end

  def test_names_of_files
    names = {
      'filename="a \\"b\\".txt"' => 'a "b".txt',
      'filename="C:\\dir\\f.txt"' => "C:\\dir\\f.txt",
      "filename*=UTF-8''%e2%82%ac.txt" => "€.txt",
      "filename=plain; filename*=utf-8'de'%C3%A4" => "ä",
      "filename=plain; filename*=utf-8''%ff" => "plain",
      "filename=plain; filename*=utf-8''%zz" => "plain",
      "filename=plain; filename*=latin1''a" => "plain",
      "filename=plain; filename*=nonsense" => "plain"
    }
    names.each do |given, name|
      upload = parse("#{part("Content-Disposition: form-data; name=f; #{given}")}--b--").first.last
      assert_equal name, upload.filename, given
      upload.close
    end
    assert_equal "f.txt", Oribi::Upload.new("C:\\dir/x\\f.txt", nil, nil, File.open(File::NULL)).basename
  end

  def test_names_on_folded_lines
    body = "--b\r\nContent-Disposition: form-data; name=\"a\r\n b\"; filename=\"c\r\n\td\"\r\n" \
           "Content-Type: text/plain;\r\n charset=utf-8\r\n\r\nx\r\n--b--"
    name, upload = Oribi::Multipart.parse(StringIO.new(body), "multipart/form-data; boundary=b").first
    assert_equal ["a b", "c d", "text/plain; charset=utf-8"], [name, upload.filename, upload.type]
  ensure
    upload&.close
  end

  def test_a_file_field_without_a_file_is_left_out
    assert_equal [%w[a x]], parse("#{part("Content-Disposition: form-data; name=f; filename=\"\"", "")}#{field("a")}--b--")
  end

  def test_an_upload_has_no_name_on_the_disk
    Dir.mktmpdir do |dir|
      upload = parse("#{file("content")}--b--", tempdir: dir).first.last
      assert_empty Dir.children(dir)
      assert_equal "content", File.read(upload.path)
      assert_equal "content", File.read(upload.save("#{dir}/kept"))
      assert_raises(Errno::EEXIST) { upload.save("#{dir}/kept") }
      assert_equal "content", upload.read
      upload.close
      assert_match(/f\.bin" closed/, upload.inspect)
    end
  end

  def test_files_are_closed_when_the_body_is_refused
    open = -> { Dir.children("/dev/fd").size }
    before = open.call
    refused(400, "the body ends before its closing delimiter") { parse(file("x") + file("y")) }
    assert_equal before, open.call
  end

  def test_a_folder_that_is_not_there
    assert_raises(Errno::ENOENT) { parse("#{file("x")}--b--", tempdir: "/nowhere") }
  end

  def test_maxima
    two = "#{field("a", "12")}#{field("b", "345")}--b--"
    assert_equal 2, parse(two, parts_max: 2, memory_max: 5).size
    refused(413, "too many parts") { parse(two, parts_max: 1) }
    refused(413, "the fields are too large for memory") { parse(two, memory_max: 4) }
    files = "#{file("1")}#{file("2")}--b--"
    assert_equal 2, parse(files, files_max: 2, memory_max: 0).size
    refused(413, "too many files") { parse(files, files_max: 1) }
    head = "Content-Disposition: form-data; name=a"
    assert_equal 1, parse("#{part(head)}--b--", part_head_max: head.bytesize).size
    refused(413, "a part's head is too long") { parse("#{part(head)}--b--", part_head_max: head.bytesize - 1) }
  end

  def test_types_without_a_boundary
    [nil, "", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded; boundary=b"].each do |type|
      refused(400, "no boundary in the type of the body") { parse("--b--", type) }
    end
    refused(400, "the boundary is longer than 70 bytes") { parse("", "multipart/form-data; boundary=#{"b" * 71}") }
  end

  def test_an_input_is_read_from_where_it_stands
    io = StringIO.new("head#{field("a")}--b--")
    io.read(4)
    assert_equal [%w[a x]], parse(io)
    assert_predicate io, :eof?
  end

  def test_every_truncation_is_refused
    body = "#{field("a")}#{file("y")}--b--"
    (0...body.bytesize).each { |n| refused(400) { parse(body.byteslice(0, n)) } }
  end

  def test_a_reader_that_has_failed_takes_nothing_more
    sink = Object.new
    def sink.part(_) = raise("sink")
    reader = Oribi::Multipart::Reader.new(sink, "b", 1, 1, 100, 100)
    assert_equal "sink", assert_raises(RuntimeError) { reader.feed(field("a")) }.message
    assert_raises(ArgumentError) { reader.feed("--b--") }
    assert_raises(ArgumentError) { Oribi::Multipart::Reader.allocate.feed("") }
  end

  # A piece cannot change under the reader, and is free again after it.
  def test_a_piece_is_locked_while_it_is_read
    piece = field("a")
    sink = Object.new
    sink.define_singleton_method(:part) { |_| piece << "more" }
    reader = Oribi::Multipart::Reader.new(sink, "b", 1, 1, 100, 100)
    assert_raises(RuntimeError) { reader.feed(piece) }
    assert_equal "free", piece.replace("free")
  end

  # The file's bytes go to the disk without the collector seeing them.
  def test_a_large_file_makes_few_objects
    body = "#{file("\r\n--" * 2_500_000)}--b--"
    before = GC.stat(:total_allocated_objects)
    upload = parse(StringIO.new(body)).first.last
    assert_operator GC.stat(:total_allocated_objects) - before, :<, 200
    assert_equal 10_000_000, upload.size
    upload.close
  end
end

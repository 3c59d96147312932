# frozen_string_literal: true

require "support"
require "for_rack_fuzz"
require "open3"

# require "oribi/rack": what applications see through Rack::Request, side by side with Rack's own code on random input,
# and what becomes of files. The same once more with Rack 2.2.
class ForRackTest < BindingTest
  ROUNDS = 3000
  BOUNDARY = "AaB03x"
  TYPE = "multipart/form-data; boundary=#{BOUNDARY}".freeze
  RACK_RELEASE = Rack.release.split(".").first(2).join(".").to_f

  def request(input, type = nil, **env)
    Rack::Request.new({ "REQUEST_METHOD" => "POST", "CONTENT_TYPE" => type, "CONTENT_LENGTH" => input.bytesize.to_s, "rack.input" => StringIO.new(input.b),
                        "QUERY_STRING" => "" }.merge(env))
  end

  def form(text) = request(text, "application/x-www-form-urlencoded")
  def multipart(*parts, **env) = request("#{parts.map { |part| "--#{BOUNDARY}\r\n".b << part.b << "\r\n" }.join}--#{BOUNDARY}--\r\n", TYPE, **env)
  def field(name, value = "v") = "Content-Disposition: form-data; name=\"#{name}\"\r\n\r\n#{value}"

  def file(name, content)
    "Content-Disposition: form-data; name=\"#{name}\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\n#{content}"
  end

  # Which methods of Oribi::ForRack gave a result meanwhile.
  def used
    names = []
    spy = Module.new do
      %i[plain_parts body_to_file file_piece cookies].each do |name|
        define_method(name) { |*arguments| super(*arguments).tap { |it| names << name if it } }
      end
    end
    Oribi::ForRack.singleton_class.prepend(spy)
    yield
    names.uniq
  ensure
    spy.instance_methods.each { |name| spy.remove_method(name) }
  end

  def test_the_default_parser_is_ours
    assert_instance_of Oribi::ForRack::QueryParser, Rack::Utils.default_query_parser
    old = Rack::Utils.default_query_parser
    Rack::Utils.param_depth_limit = 2
    assert_instance_of Oribi::ForRack::QueryParser, Rack::Utils.default_query_parser
    assert_raises(Rack::QueryParser::ParamsTooDeepError) { Rack::Utils.parse_nested_query("a[b][c]=1") }
  ensure
    Rack::Utils.default_query_parser = old
  end

  def test_a_parser_of_the_applications_own_stays
    old = Rack::Utils.default_query_parser
    own = Class.new(Rack::QueryParser)
    Rack::Utils.default_query_parser = own.new(Rack::QueryParser::Params, *(RACK3 ? [32] : [65_536, 32]))
    refute Oribi::ForRack::QueryParser.install
    assert_instance_of own, Rack::Utils.default_query_parser
  ensure
    Rack::Utils.default_query_parser = old
  end

  def test_queries_forms_and_cookies
    asked = request("", "QUERY_STRING" => "a[b][]=1&a[b][]=%C3%A4+b&c&d=", "HTTP_COOKIE" => "s=a%20b; t=%zz; s=2; u")
    assert_equal({ "a" => { "b" => %w[1 ä\ b] }, "c" => nil, "d" => "" }, asked.GET)
    assert_equal Encoding::UTF_8, asked.GET["a"]["b"][1].encoding
    assert_equal({ "s" => "a b", "t" => "%zz", "u" => nil }, asked.cookies)
    assert_equal({ "a" => [{ "b" => "1", "c" => "2" }, { "b" => "3" }] }, form("a[][b]=1&a[][c]=2&a[][b]=3\0").POST)
  end

  def test_what_rack_refuses
    assert_raises(Rack::QueryParser::InvalidParameterError) { form("a=%zz").POST }
    assert_raises(Rack::QueryParser::ParameterTypeError) { form("a=1&a[b]=2").POST }
    assert_raises(Rack::QueryParser::QueryLimitError) { form("a#{"[b]" * 101}=1").POST }
    assert_raises(Rack::QueryParser::QueryLimitError) { form("a&" * 4097).POST }
    assert_raises(Rack::QueryParser::QueryLimitError) { form("a" * 4_194_305).POST }
    assert_equal 4096, form((1..4096).map { |i| "k#{i}" }.join("&")).POST.size
  end

  def test_nested_hashes_are_of_racks_class
    inner = form("a[b]=1").POST["a"]
    assert_instance_of RACK_RELEASE >= 3.1 ? Rack::QueryParser::Params : Hash, inner
    assert_instance_of Hash, Rack::Utils.parse_nested_query("a[b]=1")
  end

  def test_a_semicolon_separates_where_rack_has_it
    assert_equal RACK3 ? { "a" => "1;b=2" } : { "a" => "1", "b" => "2" }, Rack::Utils.parse_nested_query("a=1;b=2")
  end

  def test_fields_and_files
    asked = multipart(field("a[b]", "ä"), file("f", "one\r\ntwo"), field("c"))
    names = used { asked.POST }
    assert_equal %i[plain_parts body_to_file], names
    assert_equal({ "b" => "ä" }, asked.POST["a"])
    upload = asked.POST["f"]
    assert_equal %i[filename type name tempfile head], upload.keys
    assert_instance_of Tempfile, upload[:tempfile]
    assert_equal ["a.txt", "text/plain", "f"], upload.values_at(:filename, :type, :name)
    assert_equal ["one\r\ntwo", ".txt"], [upload[:tempfile].read, File.extname(upload[:tempfile].path)]
    assert_equal [upload[:tempfile]], asked.env["rack.tempfiles"]
  end

  def test_a_file_larger_than_racks_buffer
    content = Random.new(1).bytes(3 << 20) << "\r\n--#{BOUNDARY}x" << ("y" * 70_000)
    asked = multipart(field("a"), file("f", content), field("z"))
    assert_includes used { asked.POST }, :file_piece
    tempfile = asked.POST["f"][:tempfile]
    assert_equal content.hash, tempfile.read.hash
    assert_equal "v", asked.POST["z"]
    Dir.mktmpdir do |dir|
      FileUtils.mv(tempfile.path, "#{dir}/moved")
      assert_equal content.bytesize, File.size("#{dir}/moved")
    end
  end

  def test_a_tempfile_factory
    made = []
    factory = ->(filename, type) { StringIO.new("".b).tap { |io| made << [filename, type, io] } }
    asked = multipart(file("f", "x" * 100_000), "rack.multipart.tempfile_factory" => factory)
    assert_equal 100_000, asked.POST["f"][:tempfile].size
    assert_equal [["a.txt", "text/plain"]], (made.map { |filename, type, _| [filename, type] })
  end

  def test_charsets
    latin = "Content-Disposition: form-data; name=\"l\"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n\r\n\xE4"
    asked = multipart(field("_charset_", "UTF-8"), latin, field("broken", "\xE4"))
    assert_equal [Encoding::ISO_8859_1, Encoding::UTF_8], asked.POST.values_at("l", "broken").map(&:encoding)
    refute asked.POST["broken"].valid_encoding?
    assert_equal "UTF-8", asked.POST["_charset_"]
  end

  def test_limits_of_parts
    old = [Rack::Utils.multipart_part_limit, Rack::Utils.multipart_total_part_limit]
    Rack::Utils.multipart_total_part_limit = 4
    assert_equal 3, multipart(*%w[a b c].map { |name| field(name) }).POST.size
    assert_raises(Rack::Multipart::MultipartTotalPartLimitError) { multipart(*%w[a b c d].map { |name| field(name) }).POST }
    Rack::Utils.multipart_part_limit = 2
    assert_raises(Rack::Multipart::MultipartPartLimitError) { multipart(file("a", ""), file("b", "")).POST }
  ensure
    Rack::Utils.multipart_part_limit, Rack::Utils.multipart_total_part_limit = old
  end

  def test_fields_larger_than_rack_retains
    skip "Rack 3.0 retains what there is" if RACK_RELEASE == 3.0
    assert_equal (15 << 20), multipart(field("a", "x" * (15 << 20))).POST["a"].bytesize
    assert_raises(RACK3 ? Rack::Multipart::Error : EOFError) { multipart(field("a", "x" * (9 << 20)), field("b", "x" * (9 << 20))).POST }
  end

  # Cut at every byte: the same as Rack, and no file stays.
  def test_cut_bodies_leave_no_file
    whole = "--#{BOUNDARY}\r\n#{field("a")}\r\n--#{BOUNDARY}\r\n#{file("f", "one\r\n-")}\r\n--#{BOUNDARY}--\r\n"
    Dir.mktmpdir do |dir|
      in_tmpdir(dir) do
        files = -> { Dir["#{dir}/**/RackMultipart*"] }
        (1...whole.bytesize).each do |n|
          rack, ours = [ForRackFuzz::RackParser, Rack::Multipart::Parser].map { |parser| parsed(parser, whole.byteslice(0, n), whole.bytesize) }
          assert_equal rack, ours, "cut at #{n}"
        end
        GC.start
        ours = files.call.grep(/oribi-uploads/)
        assert_empty ours
      end
    end
  end

  def parsed(parser, text, length)
    info = parser.parse(StringIO.new(text), length, TYPE, Rack::Multipart::Parser::TEMPFILE_FACTORY, 4096, Rack::Utils.default_query_parser)
    info.tmp_files.each(&:close!)
    info.params.keys
  rescue StandardError => e
    [e.class, e.message]
  end

  def in_tmpdir(dir)
    old = ENV.fetch("TMPDIR", nil)
    ENV["TMPDIR"] = dir
    yield
  ensure
    ENV["TMPDIR"] = old
  end

  # A process that is killed cannot remove its files; the next one does.
  def test_files_of_a_killed_process_are_swept
    Dir.mktmpdir do |dir|
      killed(dir)
      refute_empty Dir["#{dir}/oribi-uploads-*/RackMultipart*"]
      in_tmpdir(dir) do
        mine = multipart(file("f", "x")).POST["f"][:tempfile]
        assert_equal [mine.path], Dir["#{dir}/**/RackMultipart*"]
        Oribi::ForRack::Uploads.sweep
        assert File.exist?(mine.path), "a process that lives keeps its files"
        mine.close!
      end
    end
  end

  def killed(dir)
    code = 'require "oribi/rack"; $file = Oribi::ForRack::Uploads.new.call("a.txt", nil); $file << "x"; $file.flush; puts "made"; $stdout.flush; sleep'
    IO.popen([{ "TMPDIR" => dir }, RUBY, *loading, "-e", code]) do |child|
      assert_equal "made\n", child.gets
      Process.kill(:KILL, child.pid)
    end
  end

  # The same Rack as here.
  def loading = ["-W0", "-I#{ROOT}/ruby/lib", "-I#{File.dirname($LOADED_FEATURES.grep(%r{/rack\.rb\z}).find { |path| !path.include?("/oribi/") })}"]

  def test_files_go_when_a_process_ends
    Dir.mktmpdir do |dir|
      code = 'require "oribi/rack"; $file = Oribi::ForRack::Uploads.new.call("a.txt", nil); puts File.dirname($file.path)'
      output, status = Open3.capture2({ "TMPDIR" => dir }, RUBY, *loading, "-e", code)
      assert status.success?
      assert_match(%r{\A#{dir}/oribi-uploads-}, output)
      assert_empty Dir.children(dir)
    end
  end

  def test_threads
    bodies = (1..4).map { |i| [i, Random.new(i).bytes(200_000)] }
    threads = bodies.map do |i, content|
      Thread.new { Array.new(5) { multipart(field("n", i), file("f", content)).POST.then { |params| [params["n"], params["f"][:tempfile].read == content] } } }
    end
    threads.each.with_index(1) { |thread, i| assert_equal [[i.to_s, true]], thread.value.uniq }
  end

  def test_side_by_side_with_rack
    verbose, $VERBOSE = $VERBOSE, nil # Rack's patterns warn of some encodings
    assert_equal ROUNDS, ForRackFuzz.new(20_261_123).run(rounds: ROUNDS)
  ensure
    $VERBOSE = verbose
  end

  def test_all_of_this_with_rack_2
    return unless RACK3

    output, status = with_rack2(__FILE__)
    assert status.success?, output
    assert_match(/ 0 failures, 0 errors, 0 skips/, output)
  end
end

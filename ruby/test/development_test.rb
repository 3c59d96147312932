# frozen_string_literal: true

require_relative "support"
require "oribi/development"
require "json"

# The page of an error: what Oribi::Development makes of exceptions and environments.
class DevelopmentTest < BindingTest
  SECRETS = { "HTTP_COOKIE" => "sid=geheim", "HTTP_AUTHORIZATION" => "Basic geheim", "rack.request.form_vars" => "pin=geheim",
              "QUERY_STRING" => "token=geheim&page=2", "rack.request.form_hash" => { "user" => { "password" => "geheim", "name" => "Jo" } } }.freeze

  def setup
    super
    @dir = File.realpath(Dir.mktmpdir("oribi-dev"))
    @file = "#{@dir}/config.ru"
  end

  def teardown
    Oribi.development = nil
    FileUtils.remove_entry(@dir)
    super
  end

  def env(more = {}) = Rack::MockRequest.env_for("/cart?page=2", "HTTP_ACCEPT" => "application/json").merge(more)

  def load_failure(source)
    File.write(@file, source)
    Rack::Builder.parse_file(@file)
    flunk "it loads"
  rescue Exception => e # rubocop:disable Lint/RescueException
    Oribi::Development.load_failure(e, @file)
  end

  def page(app, more = {})
    answer = Rack::Lint.new(app).call(env(more))
    text = +""
    answer[2].each { |part| text << part }
    answer[2].close
    [answer[0], answer[1], text]
  end

  def json(app, more = {}) = JSON.parse(page(app, more)[2])

  def test_a_file_that_raises_while_it_loads
    error = json(load_failure("x = 1\n\ndef start = raise(KeyError, 'no shop')\nstart\nrun 1\n"))
    assert_equal ["KeyError", "no shop", "config.ru", 3], error.values_at("class", "error", "file", "line")
    assert_equal({ "line" => 3, "text" => "def start = raise(KeyError, 'no shop')" }, error["source"][2])
    own = error["trace"].take_while { |frame| frame["application"] }
    assert_equal [3, 4], own.first(2).map { |frame| frame["line"] }
    refute(error["trace"].drop(own.size).any? { |frame| frame["application"] })
    assert_empty error["headers"], "a request has no part in it"
  end

  def test_a_syntax_error
    error = json(load_failure("run ->(env) {\n  [200, {}, [\n}\n"))
    assert_equal ["SyntaxError", "config.ru"], error.values_at("class", "file")
    assert_includes 2..4, error["line"]
  end

  def test_a_file_that_is_not_there_and_its_cause
    app = load_failure("begin\n  raise 'first'\nrescue\n  require 'no/such'\nend\n")
    error = json(app)
    assert_equal ["LoadError", 4], error.values_at("class", "line")
    assert_match(/RuntimeError: first \(.*config\.ru:2\)/, error["causes"].first)
  end

  def test_three_forms_and_head
    app = load_failure("raise '<b>'\n")
    status, headers, html = page(app, "HTTP_ACCEPT" => "text/html,*/*")
    assert_equal [500, "text/html; charset=utf-8", "no-store", html.bytesize.to_s],
                 [status, *headers.values_at("content-type", "cache-control", "content-length")]
    assert_includes html, "&lt;b&gt;"
    text = page(app, "HTTP_ACCEPT" => "*/*")
    assert_equal "text/plain; charset=utf-8", text[1]["content-type"]
    assert_match(/\ARuntimeError: <b>/, text[2])
    _, headers, body = page(app, "HTTP_ACCEPT" => "text/html", "REQUEST_METHOD" => "HEAD")
    assert_equal ["", html.bytesize.to_s], [body, headers["content-length"]]
  end

  def test_an_error_of_ours_needs_no_class
    error = json(Oribi::Development.load_failure(Oribi::Error.new("config.ru: no such file"), "config.ru"))
    assert_equal ["config.ru: no such file", ""], error.values_at("error", "class")
    assert_nil error["line"]
  end

  def test_messages_in_any_encoding_and_none
    broken = Class.new(StandardError) { def message = raise("no") }
    ["ä".encode("UTF-16LE"), "\xff\xfe", "\0\e[31m", broken.new].each do |words|
      error = words.is_a?(String) ? RuntimeError.new(words) : words
      assert_equal 500, page(Oribi::Development.load_failure(error, nil))[0]
    end
  end

  def test_secrets_stay_away
    Oribi.development = Oribi::Development.new([@dir])
    _, body = Oribi.failure_page(RuntimeError.new("x"), env(SECRETS))
    refute_includes body, "geheim"
    assert_equal({ "token" => "[hidden]", "page" => "2", "user[password]" => "[hidden]", "user[name]" => "Jo" }, JSON.parse(body)["parameters"])
  end

  def test_nothing_where_it_is_not_asked_for
    assert_nil Oribi.failure_page(RuntimeError.new("x"), env)
    serve(->(_env) { raise "gone" }) { |client| refute_includes client.get("/").body, "gone" }
  end

  def test_a_failed_call_is_answered_with_a_page
    Oribi.development = Oribi::Development.new([__dir__])
    once = lambda do |env|
      env["PATH_INFO"] == "/each" ? [200, {}, Enumerator.new { |_| raise "in the body" }] : raise(ArgumentError, "in the call")
    end
    serve(once, lint: false) do |client|
      response = client.get("/cart")
      assert_equal [500, "text/plain; charset=utf-8"], [response.status, response["content-type"]]
      # Ruby 3.3 puts the line and a mark below it into the message.
      assert_match(/\AArgumentError: in the call\n(?: .*\n)*GET \/cart\n\n\S*development_test\.rb:\d+\n/, response.body)
      assert_match(/\ARuntimeError: in the body/, client.get("/each").body)
    end
  end

  def test_the_client_of_a_websocket_is_told_what_failed
    error = begin
      raise KeyError, "no such room\nand more"
    rescue KeyError => e
      e
    end
    assert_nil Oribi.socket_failure(error)
    Oribi.development = Oribi::Development.new([__dir__])
    text, place = Oribi.socket_failure(error)
    assert_equal "KeyError: no such room", text
    assert_match(/\Adevelopment_test\.rb:\d+\z/, place)
    assert_equal ["RuntimeError: no message", ""], Oribi.socket_failure(RuntimeError.new(""))
  end

  def test_an_answer_that_has_begun_ends_as_ever
    Oribi.development = Oribi::Development.new([__dir__])
    body = Enumerator.new { |parts| parts << "part"; raise "later" }
    serve(->(_env) { [200, {}, body] }, lint: false) do |client|
      response = begin
        client.get("/")
      rescue StandardError
        nil
      end
      refute_includes response&.body.to_s, "later"
    end
  end
end

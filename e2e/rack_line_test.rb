# frozen_string_literal: true

require_relative "support"

# A Rails application with `require "oribi/rack"`: parameters, uploads, encodings, and what is left of an upload when
# its worker is killed. Rack only; what Rack itself gives is in ruby/test/for_rack_test.rb.
if E2E::RUBY
  RACK_LINE_APP = <<~'RUBY'
    gem "railties", ">= 7.0"
    require "rails"
    require "action_controller/railtie"
    require "oribi/rack"

    class Forms < Rails::Application
      config.load_defaults 7.0
      config.eager_load = true
      config.consider_all_requests_local = false
      config.secret_key_base = "0" * 64
      config.hosts.clear
      config.logger = Logger.new(nil)
    end

    class FormsController < ActionController::Base
      param_encoding :raw, :bytes, Encoding::BINARY

      def show = render(plain: told(params.to_unsafe_h.except("controller", "action")).inspect)
      alias raw show

      def hold
        File.write("#{ENV["TMPDIR"]}/held", "#{Process.pid} #{params[:file].path}")
        sleep
      end

      private

      def told(value)
        case value
        when Hash then value.to_h { |key, of_it| [key, told(of_it)] }
        when Array then value.map { |element| told(element) }
        when ActionDispatch::Http::UploadedFile
          [value.class.name, value.original_filename, value.content_type, value.size, value.read.sum, File.file?(value.path)]
        else [value, value.encoding.to_s]
        end
      end
    end

    Rails.application.initialize!
    FormsController.skip_forgery_protection
    Rails.application.routes.draw { %w[show raw hold].each { |name| match "/#{name}", to: "forms##{name}", via: %i[get post] } }
    run Rails.application
  RUBY

  E2E.suite("rack_line", transports: %i[tcp]) do
    PARTS_TYPE = { "Content-Type" => "multipart/form-data; boundary=b" }.freeze
    FORM_TYPE = { "Content-Type" => "application/x-www-form-urlencoded" }.freeze
    FILE_HEAD = "Content-Disposition: form-data; name=\"file\"; filename=\"beach.jpg\"\r\nContent-Type: image/jpeg"

    def setup
      super
      gem "railties", ">= 7.0"
      @app = Dir.mktmpdir("oribi-rack-line")
      FileUtils.mkdir(@tmp = "#{@app}/tmp")
      File.write("#{@app}/config.ru", RACK_LINE_APP)
    rescue Gem::LoadError => e
      skip "no Rails here: #{e.message}"
    end

    def teardown
      super
      FileUtils.remove_entry(@app) if @app
    end

    def serve
      @one = start("--env", "production", "--workers", "1", "--err-respawn-interval", "100ms",
                   app: "#{@app}/config.ru", env: { "RAILS_ENV" => "production", "E2E_CHDIR" => @app, "TMPDIR" => @tmp })
    end

    def parts(*list) = "#{list.map { |head, content| "--b\r\n#{head}\r\n\r\n".b << content.b << "\r\n" }.join}--b--\r\n"
    def field(name, value) = ["Content-Disposition: form-data; name=\"#{name}\"", value]

    def assert_shows(expected, response)
      assert_equal [200, expected.inspect], [response.status, response.body.dup.force_encoding(Encoding::UTF_8)]
    end

    # One server for all of it: Rails takes seconds to start.
    def test_rails
      serve
      assert_parameters
      assert_sweeps
    end

    def assert_parameters
      client = connect(@one)
      assert_shows({ "a" => { "b" => [%w[1 UTF-8], %w[ä UTF-8]] } }, client.get("/show?a[b][]=1&a[b][]=%C3%A4"))
      assert_shows({ "a" => [{ "b" => ["x y", "UTF-8"] }] }, client.post("/show", "a%5B%5D%5Bb%5D=x+y", FORM_TYPE))
      body = parts(field("user[name]", "Jörg"), [FILE_HEAD, "\xFF\r\n" * 500_000], field("_charset_", "UTF-8"))
      assert_shows({ "user" => { "name" => %w[Jörg UTF-8] }, "file" => ["ActionDispatch::Http::UploadedFile", "beach.jpg", "image/jpeg", 1_500_000,
                                                                       ("\xFF\r\n".b * 500_000).sum, true], "_charset_" => %w[UTF-8 UTF-8] },
                   client.post("/show", body, PARTS_TYPE))
      assert_equal 200, client.post("/raw", parts(field("bytes", "\xFF\xFE")), PARTS_TYPE).status
      [["/show?a=%FF"], ["/show?a=%zz"], ["/show?a=1&a[b]=2"]].each { |target,| assert_equal 400, connect(@one).get(target).status, target }
      assert_equal 400, connect(@one).post("/show", parts(field("a", "\xFF")), PARTS_TYPE).status
      assert_equal 400, connect(@one).post("/show", parts(field("a", "1"))[0..-8], PARTS_TYPE).status
    end

    def assert_sweeps
      connect(@one).request("POST", "/hold", PARTS_TYPE, parts([FILE_HEAD, "x" * 100_000]))
      wait_until("the upload") { File.size?("#{@tmp}/held") }
      pid, path = File.read("#{@tmp}/held").split(" ", 2)
      assert_equal 100_000, File.size(path)
      Process.kill(:KILL, Integer(pid))
      wait_until("another worker") { connect(@one).get("/show").status == 200 }
      assert_equal 200, connect(@one).post("/show", parts([FILE_HEAD, "y"]), PARTS_TYPE).status
      refute File.exist?(path), "the next worker's first upload removes it"
    end
  end
end

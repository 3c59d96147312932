# frozen_string_literal: true

# Files that applications answer with and files that they only name, through the middleware and frameworks that people
# use for it; sendfile.psgi is its twin. E2E_FILES is the folder.
require "json"
require "rack"
require "rack/sendfile"

FILES = ENV.fetch("E2E_FILES")
NAMED = ->(env) { { "x-named" => "yes", env["HTTP_X_WAY"] => Rack::Utils.unescape(env["QUERY_STRING"]), "content-length" => "4" } }

# A body that the server may send straight from the file, and that must be closed.
class PathBody
  attr_reader :to_path

  def initialize(path) = @to_path = path
  def each = yield(File.binread(to_path))
  def close = warn("closed #{to_path}")
end

ANSWER = ->(headers = {}) { ->(env) { [200, { "content-type" => "text/plain" }.merge(headers), PathBody.new("#{FILES}/#{env["QUERY_STRING"]}")] } }

map("/to_path") { run ANSWER.call }
map("/tagged") { run ANSWER.call({ "etag" => "\"v1\"" }) }
map("/whole") { run ANSWER.call({ "accept-ranges" => "none" }) }
map("/handle") { run ->(env) { [200, { "content-type" => "text/plain" }, File.open("#{FILES}/#{env["QUERY_STRING"]}", "rb")] } }
map("/string") { run ->(env) { [200, { "content-type" => "text/plain" }, [File.binread("#{FILES}/#{env["QUERY_STRING"]}")]] } }
map("/stream") do
  run lambda { |env|
    pieces = Enumerator.new { |out| File.open("#{FILES}/#{env["QUERY_STRING"]}", "rb") { |io| out << io.read(30_000) until io.eof? } }
    [200, { "content-type" => "text/plain" }, pieces]
  }
end
map("/named") { run ->(env) { [200, NAMED.call(env), PathBody.new("#{FILES}/a.txt")] } }
map("/middleware") { run Rack::Sendfile.new(ANSWER.call) }
map("/accel") { run Rack::Sendfile.new(ANSWER.call, "X-Accel-Redirect") }
map("/deflated") { run Rack::Deflater.new(Rack::Sendfile.new(ANSWER.call)) }
map("/static") { run Rack::Sendfile.new(Rack::Files.new(FILES)) }
map("/env") { run ->(env) { [200, { "content-type" => "application/json" }, [JSON.generate(env.select { |_, value| value.is_a?(String) })]] } }

begin
  require "sinatra/base"
  class Downloads < Sinatra::Base
    get("/") { send_file "#{FILES}/a.txt", disposition: :attachment }
  end
  map("/framework") { run Rack::Sendfile.new(Downloads) }
rescue LoadError
  nil
end

if ENV["E2E_RAILS"]
  require "action_controller/railtie"
  class Downloading < Rails::Application
    config.load_defaults 7.0
    config.eager_load = false
    config.secret_key_base = "0" * 64
    config.hosts.clear
    config.logger = Logger.new($stderr, level: :warn)
  end
  class DownloadsController < ActionController::Base
    def show = send_file("#{FILES}/a.txt", type: "text/x-mine")

    # As Active Storage's controller for the local disk does.
    def disk
      self.status, headers, self.response_body = Rack::Files.new(nil).serving(request, "#{FILES}/a.txt")
      headers.each { |name, value| response.headers[name] = value }
    end
  end
  Rails.application.initialize!
  Rails.application.routes.draw do
    get "/rails", to: "downloads#show"
    get "/disk", to: "downloads#disk"
  end
  map("/") { run Rails.application }
else
  map("/") { run ->(_env) { [200, { "content-type" => "text/plain" }, ["Hello, World!"]] } }
end

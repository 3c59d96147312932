# frozen_string_literal: true

# Reads one field of a form, of an upload, or one cookie, and answers with it: /form, /upload, /cookie. BENCH_LINE: with
# the one line that lets Oribi's core parse them.
require "rack"
require "oribi/rack" if ENV["BENCH_LINE"]

def answer(text) = [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]

run lambda { |env|
  request = Rack::Request.new(env)
  case env["PATH_INFO"]
  when "/form" then answer(request.params["field_name_20"])
  when "/cookie" then answer(request.cookies["cookie_18"])
  when "/upload"
    fields = request.params
    file = fields["file"][:tempfile]
    answer("#{fields["field_20"]} #{file.size}").tap { file.close! }
  end
}

# frozen_string_literal: true

require_relative "../lib/form_bodies"
require_relative "../lib/throughput"

# Forms, uploads and cookies that the application reads through Rack::Request or Plack::Request, as applications do: by
# every server with what Rack and Plack bring for it, and by Oribi also with the one line that lets the core do it.
module Bench
  lines = { kinds: %i[rack rack_line psgi psgi_line], references: %w[oribi-rack oribi-plack], family: "forms", app: FORMS_APPS }

  { "form-1k" => [20, "1 KiB"], "form-16k" => [300, "16 KiB"] }.each do |name, (count, size)|
    about = "POST of a form of #{size}, #{count} fields, of which the application reads one, 32 connections"
    Throughput.define(name, about: about, quick: count == 20, **lines) do
      Request.new(path: "/form", verb: "POST", fields: { "Content-Type" => FormBodies::URLENCODED }, body: FormBodies.urlencoded(count),
                  expected: FormBodies::ESCAPED.b)
    end
  end

  Throughput.define("upload", about: "POST of 20 fields and a file of 10 MiB, of which the application reads one field and the file's size, 4 connections",
                              connections: 4, round_min: 1.0, quick: false, **lines) do
    body = FormBodies.multipart(20, FormBodies::FILE_BYTES)
    Request.new(path: "/upload", verb: "POST", fields: { "Content-Type" => FormBodies::MULTIPART }, body: body,
                expected: "value 20 #{FormBodies::FILE_BYTES}")
  end

  Throughput.define("cookie", about: "GET with 675 bytes of 20 cookies, of which the application reads one, 32 connections", quick: false, **lines) do
    Request.new(path: "/cookie", fields: { "Cookie" => FormBodies.cookies }, expected: FormBodies::COOKIE)
  end
end

# frozen_string_literal: true

# Forms and uploads when something goes wrong; form_mishaps.psgi is its twin. The test and the application tell each
# other by files.
require "oribi/form"
require "oribi/multipart"

DIR = ENV["E2E_DIR"]

def answer(text) = [200, { "content-type" => "text/plain" }, [text.to_s]]

def note(text)
  File.write("#{DIR}/noted.new", text)
  File.rename("#{DIR}/noted.new", "#{DIR}/noted")
end

run(lambda do |env|
  path = env["PATH_INFO"]
  next answer("Hello, World!") if path == "/"
  next answer(Process.pid) if path == "/pid"
  next answer(Oribi::Form.parse(env["rack.input"].read).size) if path == "/pairs"

  upload = Oribi::Multipart.parse(env["rack.input"], env["CONTENT_TYPE"]).to_h["file"]
  next answer(File.size(upload.path)) if path == "/take"

  note("#{Process.pid} #{File.size(upload.path)} #{upload.path}")
  sleep # it is killed
end)

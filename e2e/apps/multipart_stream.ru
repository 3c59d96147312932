# frozen_string_literal: true

# Uploads with multipart_stream: what they are, or the body as it came.

require "digest"
require "oribi/multipart"

run lambda { |env|
  input = env["rack.input"]
  text =
    if env["PATH_INFO"] == "/pid"
      Process.pid.to_s
    elsif env["PATH_INFO"] == "/whole"
      Digest::MD5.hexdigest(input.read)
    else
      Oribi::Multipart.parse(input, env["CONTENT_TYPE"]).map do |name, value|
        value.is_a?(String) ? "#{name}=#{value}" : "#{name}:#{value.filename}:#{value.size}"
      end.sort.join(" ")
    end
  [200, { "content-type" => "text/plain" }, [text]]
}

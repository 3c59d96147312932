# frozen_string_literal: true

module Bench
  # The forms, uploads and cookies that bench/run sends and that bench/forms.rb parses: fixed, and shaped as browsers
  # send them. bench/forms.pl makes the same ones.
  module FormBodies
    BOUNDARY = "----WebKitFormBoundaryABCDEFGHIJKLMNOP"
    MULTIPART = "multipart/form-data; boundary=#{BOUNDARY}".freeze
    URLENCODED = "application/x-www-form-urlencoded"
    FILE_BYTES = 10 * 1024 * 1024
    FILE_HEAD = "Content-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: image/png\r\n\r\n"
    # What field_name_20 of a form, and field_20 of an upload, hold when they are decoded; cookie_18 likewise.
    ESCAPED = "Jörg Müller & Co. KG in Zürich"
    COOKIE = "a value=#{"z" * 12}".freeze

    module_function

    # Some fields have escapes, as when a browser sends an address. 20 are 1 KiB, 300 are 16 KiB.
    def urlencoded(count) = fields(count).join("&").freeze

    def fields(count)
      Array.new(count) do |at|
        i = at + 1
        value = case i % 5
                when 0 then "J%C3%B6rg+M%C3%BCller+%26+Co.+KG+in+Z%C3%BCrich"
                when 1 then "42"
                when 2 then "Main+Street+#{i}%2C+Springfield%2C+#{"x" * 20}"
                else "plain-value-without-any-escape-#{"y" * 14}#{i}"
                end
        "field_name_#{i}=#{value}"
      end
    end

    # 20 fields as Rails names them: a quarter of them in arrays of hashes, the others in a hash of a hash.
    def nested
      fields(20).map.with_index(1) do |field, i|
        field.sub(/\A\w+/, i % 4 == 0 ? "order%5Bitems%5D%5B%5D%5Bname%5D" : "order%5Baddress%5D%5Bline_#{i}%5D")
      end.join("&").freeze
    end

    # 675 bytes of 20 pairs.
    def cookies = Array.new(20) { |i| "cookie_#{i + 1}=#{(i + 1) % 6 == 0 ? "a%20value%3D#{"z" * 12}" : "v" * 22}" }.join("; ").freeze

    # A body of multipart/form-data, with a file of so many bytes unless that is 0.
    def multipart(count, file_bytes)
      parts = Array.new(count) do |at|
        "--#{BOUNDARY}\r\nContent-Disposition: form-data; name=\"field_#{at + 1}\"\r\n\r\nvalue #{at + 1}\r\n"
      end.join.b
      parts << "--#{BOUNDARY}\r\n" << FILE_HEAD << Random.new(1).bytes(file_bytes) << "\r\n" if file_bytes.positive?
      (parts << "--#{BOUNDARY}--\r\n").freeze
    end
  end
end

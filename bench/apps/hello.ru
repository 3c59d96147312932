# frozen_string_literal: true

HEADERS = { "content-type" => "text/plain" }.freeze
BODY = ["Hello, World!"].freeze

# A fresh array and hash for each request, as applications give them; servers and middleware may change them.
run ->(_env) { [200, HEADERS.dup, BODY] }

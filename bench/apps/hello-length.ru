# frozen_string_literal: true

BODY = ["Hello, World!"].freeze

# For servers that keep a connection, or end an answer, better when the application says how long it is.
run ->(_env) { [200, { "content-type" => "text/plain", "content-length" => "13" }, BODY] }

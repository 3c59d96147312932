# frozen_string_literal: true

# Says much before it answers; interim.psgi is its twin.
run lambda { |env|
  link = "</#{"x" * 4000}.css>; rel=preload"
  20_000.times { env["rack.early_hints"].call("link" => link) }
  File.write("#{ENV.fetch("E2E_DIR")}/said", "")
  [200, { "content-type" => "text/plain" }, ["answered"]]
}

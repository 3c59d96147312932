# frozen_string_literal: true

# What oribi@example.service serves.
run ->(_env) { [200, { "content-type" => "text/plain" }, ["Oribi #{Oribi::VERSION} serves #{__FILE__}\n"]] }

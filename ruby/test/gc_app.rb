# Everything the binding converts, in one application; gc_test.rb evaluates it here and in a server of its own.
lambda do |env|
  body = env["rack.input"].read
  env["rack.response_finished"] << ->(*) {}
  headers = { "x-long" => "v" * 200, "x-list" => %w[a b c], "x-path" => env["PATH_INFO"], "x-agent" => env["HTTP_X_AGENT"].to_s }
  case env["PATH_INFO"]
  when "/array" then [200, headers, Array.new(70) { |i| "part #{i};" }]
  when "/each" then [200, headers, Array.new(5) { |i| "part #{i};" }.each]
  when "/stream" then [200, headers, ->(stream) { 5.times { |i| stream << "part #{i};" } && stream.close }]
  when "/headers" then [200, headers.merge(50.times.to_h { |i| ["x-#{i}", "value #{i}"] }), ["short"]]
  when "/symbols" then [200, { "x-a": :symbol, "x-b" => [1, 2] }, ["short", 5, nil]]
  when "/raise" then raise "told to fail"
  else [200, headers, [body]]
  end
end

# frozen_string_literal: true

# Something to deploy: a page, and the check that a load balancer asks. /ready turns red when a stop is announced
# (drain_delay), while requests are still welcome; workers that are only replaced, at a reload, stay green.
run lambda { |env|
  case env["PATH_INFO"]
  when "/ready"
    Oribi.stopping? ? [503, { "content-type" => "text/plain" }, ["stopping\n"]] : [200, { "content-type" => "text/plain" }, ["ready\n"]]
  else
    [200, { "content-type" => "text/plain" }, ["served by #{Process.pid}\n"]]
  end
}

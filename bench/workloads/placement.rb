# frozen_string_literal: true

require_relative "../lib/command_workload"

# What requests wait behind long calls: bench/placement, four workers and open-loop arrivals that are the same for every server.
module Bench
  CommandWorkload.define("placement", ["ruby", File.join(ROOT, "bench/lib/placement_lines.rb")], weight: 4,
                          about: "four workers, calls of 20 ms and a mix of 1 ms and 500 ms, open loop")
end

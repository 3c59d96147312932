# frozen_string_literal: true

module Oribi
  # What a process does to its heap before others are forked from it, and when it collects garbage.
  module Memory
    module_function

    # Objects that have grown old are not touched by later minor collections, so their pages stay shared with the
    # workers; the fewer pages they lie on, the more.
    def settle
      return Process.warmup if Process.respond_to?(:warmup)

      3.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
    rescue NotImplementedError # this platform does not move objects
      nil
    end

    # With collections between requests (oob_gc), Ruby 3.4 and later can leave the long ones to them altogether.
    def collect_between_requests(options, collector: GC)
      collector.config(rgengc_allow_full_mark: false) if options["oob_gc"] == "on" && collector.respond_to?(:config)
    end
  end
end

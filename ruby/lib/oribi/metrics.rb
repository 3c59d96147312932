# frozen_string_literal: true

# For programs that may run under other servers: `require "oribi/metrics"` gives Oribi.counter, Oribi.gauge and
# Oribi.histogram, whose values are kept under Oribi alone. A worker of Oribi's has them without it.
require_relative "../oribi"

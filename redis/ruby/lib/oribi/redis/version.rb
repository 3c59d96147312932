# frozen_string_literal: true

module Oribi
  class Redis
    VERSION = "0.1.0"
  end
end

# frozen_string_literal: true

require_relative "app"

run Isucon4::App.freeze.app

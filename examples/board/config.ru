# frozen_string_literal: true

require_relative "app"
require "rack/tempfile_reaper"

# Uploads larger than a form field come as temporary files: gone with the request, not with the next garbage collection.
use Rack::TempfileReaper
run Board::App

# frozen_string_literal: true

# A chat: config/oribi.rb has the server's settings, public/ the pages, and this is the rest.
require_relative "lib/room"

run Chat::Room

# frozen_string_literal: true

# A Rails application in one file, in production mode and loaded before the fork: what workers of a real one share, and
# what they do not.
ENV["RAILS_ENV"] = "production"
require "rails"
require "action_controller/railtie"

class MemoryApp < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = true
  config.secret_key_base = "benchmark" * 8
  config.logger = Logger.new(File::NULL)
  config.hosts.clear
  config.consider_all_requests_local = false
end

class PagesController < ActionController::Base
  TEMPLATE = "<ul><% items.each do |item| %><li><%= item %></li><% end %></ul>"

  def show = render(inline: TEMPLATE, locals: { items: (1..100).map { |i| "item #{i}" } })
end

MemoryApp.initialize!
MemoryApp.routes.draw { root to: "pages#show" }
run MemoryApp

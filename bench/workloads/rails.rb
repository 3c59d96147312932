# frozen_string_literal: true

require_relative "../lib/driven_workload"
require_relative "../rails/app"

module Bench
  # A fresh Rails application (bench/rails/app.rb): of ten scenarios four look at the index, five at one post, one writes (form, post, page).
  class RailsWorkload < DrivenWorkload
    register "rails", about: "a fresh Rails scaffold over SQLite: index, show, create", weight: 5.0

    private

    def kinds = [:rack]
    def apps = { rack: @app.config_ru }
    def scenario = "posts"
    def workers = 2
    def chdir = @app.dir
    def environment = @app.environment(@folder)
    def before_run(_target) = @app.reset(@folder)

    def prepare
      spent_s
      reason = RailsApp.missing and raise reason
      progress("generating the application")
      @app = RailsApp.new.prepare
      @folder = context.scratch("posts")
      @app.start(@folder)
    end
  end
end

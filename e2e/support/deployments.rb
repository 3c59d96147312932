# frozen_string_literal: true

require "json"
require "shellwords"
require "yaml"
require_relative "pages"

module E2E
  # The command lines that a page's blocks of a deployment start, and what health check goes with each.
  module Deployments
    # path: of the health check, nil where the block has none. grace: what the manager grants before it kills, seconds.
    Line = Struct.new(:text, :path, :port, :grace, keyword_init: true)

    module_function

    # @return [Array<Line>]
    def lines_of(block)
      case block.language
      when "procfile" then [Line.new(text: block.text[/^web: (.*)/, 1])]
      when "dockerfile" then block.text.scan(/^CMD (.*)/).map { |list,| Line.new(text: Shellwords.join(JSON.parse(list))) }
      else YAML.load_stream(block.text).flat_map { |document| document["kind"] ? of_kubernetes(document) : of_kamal(document) }
      end
    end

    def of_kamal(document)
      proxy = document.fetch("proxy")
      [Line.new(text: document.dig("servers", "web", "cmd"), path: proxy.dig("healthcheck", "path"), port: proxy["app_port"])]
    end

    def of_kubernetes(document)
      pod = document.dig("spec", "template", "spec")
      pod["containers"].map do |one|
        Line.new(text: Shellwords.join(one.values_at("command", "args").flatten), path: one.dig("readinessProbe", "httpGet", "path"),
                 port: one["ports"].first["containerPort"], grace: pod["terminationGracePeriodSeconds"])
      end
    end

    # What a task of Capistrano says, on this machine.
    Task = Struct.new(:follower) do
      def namespace(_name) = yield
      def task(_name) = yield
      def on(_hosts) = yield
      def roles(name) = [name]
      def after(*) = nil
      def current_path = "/srv/app/current"
      def within(folder) = (@folder = folder) && yield
      def execute(*words) = follower.run(Page::Command.new(text: @folder ? "(cd #{@folder} && #{words.join(" ")})" : words.join(" ")))
    end
  end
end

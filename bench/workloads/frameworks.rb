# frozen_string_literal: true

require_relative "../lib/driven_workload"

module Bench
  # Hello world of the Perl frameworks: what is left of a server's lead when a framework stands above it.
  class FrameworkWorkload < DrivenWorkload
    private

    def kinds = [:psgi]
    def scenario = "hello"
    def workers = 2
    def browsers = 32
    def apps = { psgi: File.join(ROOT, "bench/apps/#{self.class.app}") }

    def prepare
      spent_s
      package = self.class.package
      system("perl", "-M#{package}", "-e", "1", err: File::NULL) or raise "#{package} is not installed (script/setup run test)"
    end

    class << self
      attr_reader :app, :package

      def of(package, app, name)
        @package = package
        @app = app
        register name, about: "hello world in #{package}, 32 connections", family: "frameworks", weight: 1.5, quick: false
      end
    end
  end

  class Dancer2Hello < FrameworkWorkload
    of "Dancer2", "dancer2.psgi", "dancer2"
  end

  class MojoliciousHello < FrameworkWorkload
    of "Mojolicious", "mojolicious.psgi", "mojolicious"
  end
end

# frozen_string_literal: true

module Oribi
  class Development
    # The application in the place of one that does not load.
    class LoadFailure
      NOTE = "Every request is answered with this page until the application loads: correct the file, and ask again."

      def initialize(exception, path)
        @exception = exception
        @path = path
      end

      def call(env)
        facts = Facts.new([Dir.pwd, (File.dirname(File.expand_path(@path)) if @path)].compact.uniq)
        facts.title("#{@path || "the application"} cannot be loaded")
        facts.note(NOTE)
        facts.error(@exception)
        facts.wishes(env)
        answer(*facts.page, env["REQUEST_METHOD"] == "HEAD")
      end

      private

      def answer(type, page, is_head)
        headers = { "content-type" => type, "content-length" => page.bytesize.to_s, "cache-control" => "no-store",
                    "x-content-type-options" => "nosniff" }
        [500, headers, is_head ? [] : [page]]
      end
    end
  end
end

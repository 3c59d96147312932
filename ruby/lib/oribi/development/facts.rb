# frozen_string_literal: true

module Oribi
  class Development
    # What there is to say of an error, as the core's page takes it: kind, name and value of each fact.
    class Facts
      FRAMES_MAX = 200
      CAUSES_MAX = 8
      DEPTH_MAX = 8 # of parameters within parameters
      FRAME = /\A(.+?:\d+)(?::in [`'](.*)')?\z/m
      SYNTAX_PLACE = /\A(?:-- )?(.+?:\d+): /

      def initialize(roots = [])
        @words = []
        add("program", "oribi #{VERSION}, ruby #{RUBY_VERSION}")
        roots.each { |root| add("root", root) }
      end

      # @return [Array<String>] content type and page
      def page = Core.failure_page(@words)

      def title(text) = add("title", text)

      def note(text) = add("note", text)

      def error(error)
        add("class", error.class.name || "an exception without a class name") unless error.is_a?(Error)
        add("message", message_of(error))
        syntax_place(error)&.then { |place| add("frame", place) }
        Array(error.backtrace).reject { |line| line.start_with?(*Failure::OURS, "<internal:") }.first(FRAMES_MAX).each { |line| frame(line) }
        causes_of(error).each { |cause| add("cause", cause_text(cause)) }
      end

      # Objects of libraries are named by their classes: what they print may be long, and secret.
      def environment(env)
        env.each do |key, value|
          text = [String, Symbol, Numeric, true, false].any? { |kind| kind === value } ? value : "(#{value.class})" # rubocop:disable Style/CaseEquality
          add("env", text, key)
        end
        parameters(env["rack.request.form_hash"])
      end

      # The form of the page, which a load failure chooses by the request without showing it.
      def wishes(env)
        %w[HTTP_ACCEPT HTTP_X_REQUESTED_WITH].each { |key| add("ask", env[key], key) if env[key] }
      end

      private

      def add(kind, value, name = "") = @words.push(kind, bytes(name), bytes(value))

      def bytes(value) = Failure.legible(value)

      def frame(line)
        place, name = line.match(FRAME)&.captures
        add("frame", place || line, name || "")
      end

      # With the suggestions and snippets that Ruby has, and without the class, which is told apart from it.
      def message_of(error)
        return error.message unless error.respond_to?(:detailed_message)

        error.detailed_message(highlight: false).sub(" (#{error.class})", "")
      rescue StandardError
        "(the message of this exception cannot be read)"
      end

      # The parser is no frame: the message begins with the place.
      def syntax_place(error) = error.is_a?(SyntaxError) ? error.message[SYNTAX_PLACE, 1] : nil

      def causes_of(error)
        causes = []
        while (error = error.cause) && causes.size < CAUSES_MAX && !causes.include?(error)
          causes << error
        end
        causes
      end

      def cause_text(cause)
        place = Failure.place_of(cause)
        "#{cause.class}: #{cause.message}#{" (#{place})" if place}"
      end

      def parameters(value, name = "", depth = 0)
        if value.is_a?(Hash) && !(value.key?(:tempfile) || value.key?("tempfile")) && depth < DEPTH_MAX
          value.each { |key, part| parameters(part, name.empty? ? key.to_s : "#{name}[#{key}]", depth + 1) }
        elsif value.is_a?(Array) && depth < DEPTH_MAX
          value.each { |part| parameters(part, "#{name}[]", depth + 1) }
        elsif value
          add("param", value.is_a?(String) ? value : "(#{value.class})", name)
        end
      end
    end
  end
end

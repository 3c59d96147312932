# frozen_string_literal: true

require "ripper"

module Oribi
  module Import
    # Ruby's own parsers: Prism where it is there, which finds what Ruby itself finds from 3.4 on, else Ripper. Both
    # give a tree in the form of Ripper, and the line and the message of the first mistake.
    module Parser
      # By the parser of Ruby before 3.4.
      module OfRipper
        # Notes the first mistake.
        class Check < Ripper
          attr_reader :mistake

          def on_parse_error(message) = @mistake ||= [lineno, message]
          alias compile_error on_parse_error
          %i[alias_error assign_error class_name_error param_error].each do |event|
            define_method("on_#{event}") { |message, _| @mistake ||= [lineno, message] }
          end
        end

        module_function

        def tree(source) = Ripper.sexp(source)

        def mistake(source)
          check = Check.new(source)
          check.parse
          check.mistake || ([check.lineno, "syntax error"] if check.error?)
        end
      end

      # By Prism, whose gem gives its trees Ripper's form. Of older ones that form is not complete.
      module OfPrism
        OLDEST = Gem::Version.new("1.2")

        module_function

        # @return [Boolean] is there a Prism that will do?
        def load
          require "set"
          require "prism"
          return false if Gem::Version.new(Prism::VERSION) < OLDEST

          builder
          true
        rescue LoadError, NameError
          false
        end

        # For the newest syntax, also where the Ruby that runs is an older one.
        def builder
          @builder ||= Class.new(Prism::Translation::Ripper::SexpBuilderPP) do
            private

            def result = @result ||= Prism.parse(source)
          end
        end

        def tree(source)
          return unless Prism.parse_success?(source)

          made = builder.new(source)
          tree = made.parse
          tree unless made.error?
        end

        def mistake(source)
          first = Prism.parse(source).errors.min_by { |error| error.location.start_offset }
          [first.location.start_line, "syntax error: #{first.message}"] if first
        end
      end

      class << self
        # For tests: the parser to be used from now on.
        attr_writer :current

        def current = @current ||= OfPrism.load ? OfPrism : OfRipper
      end
    end
  end
end

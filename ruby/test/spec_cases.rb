# frozen_string_literal: true

require "support"

# The reader of spec/ that the end-to-end tests have.
module E2E
  ROOT = BindingTest::ROOT
end

require_relative "../../e2e/support/spec_cases"

SpecCase = E2E::SpecCase

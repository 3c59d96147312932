# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Drivers for tests of applications, Oribi::Test of both languages: a test as an application would have it.
E2E.suite("drivers", transports: %i[tcp]) do
  include FrontendServers

  def test_a_test_of_an_application
    command = if E2E::RUBY
                [RbConfig.ruby, "-I#{E2E::ROOT}/ruby/lib", "e2e/apps/driver_test.rb"]
              else
                ["perl", "-I#{E2E::ROOT}/perl/blib/lib", "-I#{E2E::ROOT}/perl/blib/arch", "e2e/apps/driver.t"]
              end
    output, status = Open3.capture2e({ "E2E_DIR" => @dir }, *command, chdir: E2E::ROOT)
    assert_predicate status, :success?, output
    assert_match(E2E::RUBY ? /^8 runs, \d+ assertions, 0 failures, 0 errors, 0 skips$/ : /^1\.\.\d+$/, output)
  end
end

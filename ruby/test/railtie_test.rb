# frozen_string_literal: true

require_relative "support"

# What the gem does inside Rails; the rest is e2e/rails_test.rb. Rails itself is not loaded.
module Rails
  class Railtie; end
end
require "oribi/railtie"

class RailtieTest < Minitest::Test
  def taken(env) = env.tap { Oribi::Railtie.take_rails_server(env) }

  def test_rails_server_takes_oribi_unless_the_environment_names_another
    assert_equal({ "RACKUP_HANDLER" => "oribi", "RACK_HANDLER" => "oribi" }, taken({}))
    %w[RACKUP_HANDLER RACK_HANDLER].each { |name| assert_equal({ name => "puma" }, taken({ name => "puma" })) }
  end

  def test_other_commands_of_rails_are_left_alone
    refute(ENV.key?("RACKUP_HANDLER") && ENV["RACKUP_HANDLER"] == "oribi")
  end
end

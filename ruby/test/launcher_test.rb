# frozen_string_literal: true

require "support"
require "oribi/launcher"

# What rackup and Rails fill in, and what their users have said.
class LauncherTest < BindingTest
  def launcher(settings, *words, program: "/usr/bin/rackup", env: {})
    Oribi::Launcher.new(settings, words: ["ruby", program, *words], program: program, env: env)
  end

  def sources(settings, *words, **more) = %i[Port Host environment].map { |name| launcher(settings, *words, **more).source(name) }

  RACKUP = { Port: 9292, Host: "localhost", environment: "development" }.freeze
  RAILS = { Port: 3000, Host: "localhost", environment: "development", user_supplied_options: [] }.freeze

  def test_defaults_of_rackup
    assert_equal %i[launcher launcher launcher], sources(RACKUP)
    assert_equal %i[launcher launcher launcher], sources(RACKUP, "-O", "Workers=2", "config.ru")
    assert_equal %i[command launcher environment], sources(RACKUP.merge(Port: 3000, environment: "staging")), "what is no default was said"
  end

  def test_flags_in_every_spelling
    [%w[-p 9292], %w[-p9292], %w[--port 9292], %w[--port=9292]].each { |words| assert_equal :command, sources(RACKUP, *words)[0], words.inspect }
    assert_equal %i[launcher command command], sources(RACKUP, "-o", "localhost", "-E", "development")
    assert_equal :launcher, sources(RACKUP, "--pid", "x")[0]
  end

  # `ruby -p` and the words of `bundle exec` are no flags of rackup.
  def test_words_before_the_program_do_not_count
    assert_equal :launcher, Oribi::Launcher.new(RACKUP, words: %w[ruby -p 1 /gems/rackup], program: "/usr/bin/rackup", env: {}).source(:Port)
  end

  def test_defaults_of_rails
    rails = { program: "bin/rails" }
    assert_equal %i[launcher launcher environment], sources(RAILS, "server", **rails)
    given = RAILS.merge(user_supplied_options: %i[Port Host environment])
    assert_equal %i[command command environment], sources(given, "server", **rails)
    assert_equal %i[environment environment environment], sources(given, "server", env: { "PORT" => "1", "BINDING" => "b" }, **rails)
    assert_equal %i[command command command], sources(given, "server", "-p", "1", "-b", "h", "-e", "test", env: { "PORT" => "1" }, **rails)
  end

  def test_a_program_that_calls_the_handler_has_said_it
    assert_equal %i[command command command], sources(RACKUP, program: "my_server.rb")
    assert_equal :command, launcher(RACKUP).source(:Workers)
  end

  def test_the_frameworks_environment
    assert_equal "production", launcher(RACKUP, env: { "RAILS_ENV" => "", "APP_ENV" => "production" }).framework_env
    assert_nil launcher(RACKUP, env: {}).framework_env
    assert_nil launcher(RACKUP, "-E", "development", env: { "APP_ENV" => "production" }).framework_env
    assert_nil launcher(RACKUP.merge(environment: "test"), env: { "APP_ENV" => "production" }).framework_env
    assert_nil launcher(RAILS, program: "rails", env: { "APP_ENV" => "production" }).framework_env
    assert_nil launcher({}, env: { "APP_ENV" => "production" }).framework_env
  end
end

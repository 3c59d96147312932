# frozen_string_literal: true

require_relative "support"
require_relative "support/home"

# What the application finds of the command that has loaded it, and in which locale.
E2E.suite("surroundings", transports: [:tcp]) do
  include E2E::Home

  def app(ruby:, perl:)
    file("app#{E2E.differing(:app_extension)}", E2E::RUBY ? "#{ruby}\n" : "use utf8;\n#{perl}\n")
  end

  def test_no_words_of_the_command_line_are_left
    app = app(ruby: "words = ARGV.dup\nrun ->(_env) { [200, {}, [*words, *ARGV, Process.pid.to_s]] }",
              perl: "my @words = @ARGV; sub { [200, [], [@words, @ARGV, $$]] }")
    one = start("--access-log", "off", app: app)
    first = one.get("/").body
    assert_match(/\A\d+\z/, first)
    one.signal(:HUP)
    wait_until("the reload: #{one.stderr}") { one.get("/").body != first }
    assert_match(/\A\d+\z/, one.get("/").body)
    assert_equal 0, one.stop.exitstatus, one.stderr
  end

  def test_letters_beyond_ascii_in_the_locale_c
    app = app(ruby: "# Grüße\ntext = 'Grüße'\nrun ->(_env) { [200, {}, [text, text.encoding.name, __LINE__.to_s]] }\n__END__\nEnde",
              perl: "my $text = 'Grüße'; utf8::encode($text); sub { [200, [], [$text, 'UTF-8', __LINE__ + 1]] }")
    code = E2E::RUBY ? "# Größe\nworkers 1\nwords = 'Größe'\nraise unless words.size == 5\n" : "# Größe\n+{ workers => 1 };\n"
    config = file("config#{E2E::RUBY ? ".rb" : ".pl"}", code)
    %w[C POSIX].each do |locale|
      one = start("-C", config, app: app, env: { "LC_ALL" => locale, "LANG" => nil, "RUBYOPT" => nil })
      assert_equal "GrüßeUTF-83", one.get("/").body.force_encoding("UTF-8")
      assert_equal 0, one.stop.exitstatus, one.stderr
    end
  end
end

# frozen_string_literal: true

require_relative "support"
require "json"
require "open3"

# `init` makes what an application's folder needs, changes nothing that is there, and tells the rest.
E2E.suite("init", transports: %i[tcp]) do
  include E2E::Home

  RB = E2E::RUBY
  APP = RB ? "config.ru" : "app.psgi"
  CONFIG = RB ? "config/oribi.rb" : "config/oribi.pl"
  NEEDED = RB ? "Gemfile" : "cpanfile"
  APP_TEXT = RB ? "run ->(_) { [200, {}, [\"app\"]] }\n" : "sub { [200, [], ['app']] };\n"
  LINE = RB ? 'gem "oribi"' : "requires 'Oribi';"

  def setup
    super
    file(APP, APP_TEXT)
  end

  def command(*words, chdir: @home)
    perl = %w[lib arch].map { |dir| "#{E2E::ROOT}/perl/blib/#{dir}" }.join(":")
    variables = RB ? { "RUBYLIB" => "#{E2E::ROOT}/ruby/lib" } : { "PERL5LIB" => perl }
    unset = %w[RACK_ENV PLACK_ENV RAILS_ENV APP_ENV PORT].to_h { |name| [name, nil] }
    output, error, status = Open3.capture3({ **unset, **variables }, E2E::Server.binary, *words, chdir: chdir)
    [status.exitstatus, output, error]
  end

  def init(*words, **more)
    code, output, error = command("init", *words, **more)
    assert_equal [0, ""], [code, error], output
    output
  end

  def refused(*words)
    code, output, error = command("init", *words)
    assert_equal 1, code, output
    assert_equal 1, error.lines.size, error
    error.delete_prefix("#{E2E::COMMAND}: ").chomp
  end

  def done(output) = output.scan(/^ +(create|append|identical|keep|replace|note)  ([^:\n]+)/).map(&:reverse).to_h
  def read(name) = File.binread("#{@home}/#{name}")
  def all = Dir.glob("**/*", base: @home).sort

  def test_a_folder_gets_what_it_needs_and_stays_so
    file(NEEDED, "# what it needs")
    before = all
    pretended = init("--pretend")
    assert_equal before, all, "--pretend writes nothing"
    output = init
    assert_equal pretended, output
    made = [CONFIG, *("bin/oribi" if RB), "Procfile.dev"]
    assert_equal({ **made.to_h { |name| [name, "create"] }, NEEDED => "append" }, done(output))
    assert_equal "# what it needs\n#{LINE}\n", read(NEEDED)
    assert_equal(RB ? "web: bin/oribi\n" : "web: oribi-psgi\n", read("Procfile.dev"))
    assert File.executable?("#{@home}/bin/oribi") if RB
    state = all.to_h { |name| [name, File.file?("#{@home}/#{name}") && read(name)] }
    assert_equal %w[identical], done(init).values.uniq
    assert_equal state, all.to_h { |name| [name, File.file?("#{@home}/#{name}") && read(name)] }
  end

  # Every line that the file proposes is one that the server takes, and the file is taken as it is.
  def test_all_that_the_file_proposes_is_an_option
    init
    assert_equal 0, command("--check").first
    assert_equal RB, read(CONFIG).match?(/WEB_CONCURRENCY|MAX_THREADS/), "only oribi reads them"
    refute_match(/\boribi --version/, read(CONFIG)) unless RB
    text = read(CONFIG).lines.map { |line| line.sub(/\A *# (?=\w+ (?:=>|"|\d|\{))/, "") }.join
    refute_match(/^ *# (workers|bind|after_fork) /, text)
    file(CONFIG, text.sub("br gzip", "gzip"))
    %w[public/assets log tmp].each { |name| FileUtils.mkdir_p("#{@home}/#{name}") }
    code, output, error = command("--print-config")
    assert_equal [0, ""], [code, error]
    assert_match(/^workers = 4$/, output)
    assert_match(%r{^health ["']/up["']}, output)
  end

  def test_what_is_there_is_kept_unless_it_is_forced
    file(CONFIG, "# mine\n")
    file("Procfile.dev", "css: watch\r\nweb: bin/rails server\r\n")
    file(NEEDED, "# a\r\n#{LINE.tr("\"", "'")} # there\r\n")
    output = init
    assert_equal "keep", done(output)[CONFIG]
    assert_equal "identical", done(output)[NEEDED]
    assert_equal "css: watch\r\nweb: bin/rails server\r\n", read("Procfile.dev")
    assert_equal "replace", done(init("--force"))[CONFIG]
    assert_equal "# mine\n", read("#{CONFIG}.old")
    assert_match(/\A# Configuration of Oribi/, read(CONFIG))
    assert_empty Dir.glob("**/*.new", base: @home)
  end

  def test_lines_end_as_in_the_file
    file(NEEDED, "# a\r\n# b")
    file("Procfile.dev", "css: watch\n")
    init
    assert_equal "# a\r\n# b\r\n#{LINE}\r\n", read(NEEDED)
    assert_equal "css: watch\nweb: #{RB ? "bin/oribi" : "oribi-psgi"}\n", read("Procfile.dev")
  end

  # Other servers' files and starts are told of, and left.
  def test_what_is_left_to_be_done_is_told
    other = RB ? "config/puma.rb" : "uwsgi.ini"
    { other => "", "Dockerfile" => "CMD [\"other\"]\n", "Procfile" => "web: other\n" }.each { |name, text| file(name, text) }
    file("Gemfile", "source \"https://rubygems.org\"\n") if RB
    output = init
    assert_match(/note  #{other}: #{E2E::COMMAND} import #{other} -o #{CONFIG} --force takes its settings over$/, output)
    assert_equal %w[note note], done(output).values_at("Dockerfile", "Procfile")
    words = JSON.parse(output[/^  CMD (\[.*\])$/, 1])
    assert_equal [*(%w[bundle exec] if RB), E2E::COMMAND, "--env", "production"], words
    assert_includes output, "  web: #{words.join(" ")}\n"
    assert_equal "CMD [\"other\"]\n", read("Dockerfile")
  end

  def test_folders_and_languages
    FileUtils.mkdir_p("#{@home}/a shop")
    file("a shop/config.ru", "run 1")
    file("a shop/bin/app.psgi", "sub {}")
    assert_equal %w[config/oribi.rb Procfile.dev], done(init("--rack", "a shop")).keys
    output = init("--psgi", "a shop")
    assert_equal "create", done(output)["config/oribi.pl"]
    assert_includes output, "  web: oribi-psgi bin/app.psgi --env production\n"
    assert_includes output, "  oribi-psgi check bin/app.psgi  "
    assert_equal "web: oribi\n", read("a shop/Procfile.dev")
    { "my_app.psgi" => "sub {}", "script/my_app" => "use Mojolicious::Commands;" }.each do |name, text|
      FileUtils.remove_entry("#{@home}/a shop")
      file("a shop/#{name}", text)
      assert_includes init("--psgi", "#{@home}/a shop"), "oribi-psgi #{name} --env production\n"
    end
  end

  def test_bad_input
    assert_equal "init: unknown option --nonsense (see --help)", refused("--nonsense")
    assert_equal "init: one folder at a time, not a and b", refused("a", "b")
    FileUtils.rm("#{@home}/#{APP}")
    assert_match(RB ? /\Ano config.ru in \./ : /\Ano PSGI application in \./, refused)
    assert_match(/ in nowhere\b/, refused("nowhere"))
    file("one.psgi", "1")
    file("two.psgi", "1")
    assert_match(/\Ano PSGI application/, refused("--psgi"))
    file(APP, APP_TEXT)
    file("config", "no folder")
    assert_match(%r{\Acannot .*config.*: not a directory\z}, refused)
    FileUtils.rm("#{@home}/config")
    FileUtils.mkdir_p("#{@home}/#{CONFIG}")
    assert_equal "#{CONFIG} is no regular file", refused
    FileUtils.rmdir("#{@home}/#{CONFIG}")
    File.symlink("nowhere", "#{@home}/#{CONFIG}")
    assert_equal "#{CONFIG} is a link to a file that is not there", refused("--force")
    refute File.exist?("#{@home}/config/nowhere")
  end

  def test_the_longest_file_that_is_read
    file(NEEDED, "#" * (1024 * 1024))
    assert_equal "append", done(init)[NEEDED]
    file(NEEDED, "#" * (1024 * 1024 + 1))
    assert_equal "#{NEEDED} is longer than 1048576 bytes", refused
  end
end

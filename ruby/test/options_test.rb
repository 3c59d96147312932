# frozen_string_literal: true

require "support"
require "oribi/config"

# Options and config files as Ruby sees them; what each option accepts is the core's to test.
class OptionsTest < BindingTest
  def options = Oribi::Options.new

  def test_table
    table = Oribi::Options.table
    workers = table.find { |option| option[:name] == "workers" }
    assert_equal ["w", :count], workers.values_at(:short, :type)
    assert_includes workers[:aliases], "max_workers"
    assert(table.all?(&:frozen?))
    assert_equal table.map { |option| option[:name] }.uniq.size, table.size
    refute(table.any? { |option| option[:name] == "eval" }, "Perl's alone")
  end

  def test_ruby_values
    set = options.set(:workers, 3).set("preload", false).set("idle_timeout", 2.5).set("requests_max", 5..9).set("bind", ["a:1", "b:2"])
    assert_equal ["3", "off", "2500ms", "5..9", "a:1\nb:2"], %w[workers preload idle_timeout requests_max bind].map { |name| set[name] }
    assert_equal "5..8", options.set("requests_max", 5...9)["requests_max"]
    assert_equal options["workers"], options.set("workers", nil)["workers"]
  end

  def test_every_spelling
    ["idle_timeout", "idle-timeout", "IdleTimeout", :IdleTimeout, :idle_timeout, "keepalive_timeout"].each do |name|
      assert_equal "7s", options.set(name, "7s")["idle_timeout"], name
    end
    assert_equal "idle_timeout", Oribi::Options.find("IdleTimeout")
    assert_nil Oribi::Options.find("nothing_like_it")
  end

  def test_names_of_rhebok
    {
      "Host" => "127.0.0.1", "Port" => "5000", "Path" => "/tmp/x.sock", "BackLog" => "64", "ReusePort" => "true", "MaxWorkers" => "5",
      "MaxRequestPerChild" => "1000", "MinRequestPerChild" => "900", "Timeout" => "300", "OobGC" => "true", "MaxGCPerRequest" => "5",
      "MinGCPerRequest" => "2", "ChunkedTransfer" => "true", "SpawnInterval" => "1", "ErrRespawnInterval" => "2", "ConfigFile" => "c.rb"
    }.each { |name, value| options.set(name, value) }
  end

  def test_mistakes_are_one_line
    error = assert_raises(Oribi::Error) { options.set("wrokers", 1) }
    assert_match(/wrokers.*workers/, error.message)
    assert_equal 1, error.message.lines.size
    assert_match(/workers.*many/, assert_raises(Oribi::Error) { options.set("workers", "many") }.message)
    assert_raises(ArgumentError) { options.set("bind", "a\0b") }
  end

  def test_the_command_wins_in_any_order
    assert_equal "2", options.set("workers", 2).set("workers", 3, source: :file)["workers"]
    assert_equal "2", options.set("workers", 3, source: :file).set("workers", 2)["workers"]
    assert_equal "a:1", options.set("bind", "b:2", source: :file).set("bind", "a:1")["bind"]
  end

  def test_command_line
    parsed = options.parse(["-w", "4", "--no-preload", "--bind=a:1", "-b", "b:2", "-I", "lib", "-r", "json", "my.ru"])
    assert_equal ["4", "off", "a:1\nb:2", "my.ru"], [parsed["workers"], parsed["preload"], parsed["bind"], parsed.app]
    assert_equal [["lib"], ["json"]], [parsed.include, parsed.require]
    assert_raises(Oribi::Error) { options.parse(%w[--workers]) }
    assert_raises(Oribi::Error) { options.parse(%w[a.ru b.ru]) }
  end

  def test_printed_options_are_accepted
    printed = options.set("workers", 3).finish.to_s
    assert_match(/^workers = 3$/, printed)
    printed.each_line(chomp: true) do |line|
      name, value = line.split(/ = ?/, 2)
      options.set(name, value) unless value.empty?
    end
  end

  def test_help_names_every_option
    Oribi::Options.table.each { |option| assert_match(/--(\[?no-\]?)?#{option[:name].tr("_", "-")}\b/, Oribi::Options.help(all: true)) }
  end

  # --- config files ---

  def config(source, given = options)
    path = File.join(@log, "config.rb")
    File.write(path, source)
    given.set("config", path)
    @hooks = Oribi::Config.load(given)
    given
  end

  # --- words with several arguments ---

  def test_arguments_and_keywords_become_a_line
    set = config(<<~RUBY)
      require "pathname"
      static "/assets", Pathname("public/assets"), cache: "public, max-age=31536000 & 100%", nosniff: false, index: nil
      static "public", header: { "X-A" => "b", c: :d }, symlinks: ["/e", Pathname("/f")]
      static "/g=h?html=on"
      static [["/i", "j", { html: true }], "k"]
    RUBY
    assert_equal <<~TEXT.chomp, set["static"]
      /assets=public/assets?cache=public, max-age=31536000 %26 100%25&nosniff=off
      public?header=X-A:b&header=c:d&symlinks=/e&symlinks=/f
      /g=h?html=on
      /i=j?html=on
      k
    TEXT
  end

  def test_words_from_a_method_call
    assert_equal "/a=b?html=on\nc", options.set(:static, [["/a", "b", { html: true }], ["c"]])["static"]
    assert_equal "/a=b\nc", options.set(:static, ["/a=b", "c"])["static"]
    assert_equal "", options.set(:static, nil)["static"]
  end

  def test_printed_words_are_read_again
    printed = 'static "/a", "\\#c \\"d\\#{e}", cache: "it\'s $5 & \\\\", header: ["X:y", "Z:"], html: false'
    assert_equal printed, config(printed).to_s[/^static .*/]
  end

  def test_mistakes_in_words
    {
      'static' => "static needs FOLDER: static [PREFIX, ]FOLDER",
      'static "a", "b"' => 'static: PREFIX must begin with a slash, not "a"',
      'static "/a", "b", "c"' => "static takes at most 2 arguments, not 3: static [PREFIX, ]FOLDER",
      'static "/a", nil' => "static: FOLDER must be text",
      'static "/a", []' => "static: FOLDER must be text",
      'static "/a", -> {}' => "static: FOLDER must be text",
      'static "/a", "b", cahce: "c"' => 'static has no setting "cahce": did you mean cache?',
      'static "/a", "b", cache: -> {}' => "static: cache must be text",
      'static "/a", "b", index: "c/d"' => 'static "/a=b?index=c/d" needs index to be a file\'s name, as index.html'
    }.each do |source, message|
      error = assert_raises(Oribi::Error, source) { config("workers 2\n#{source}") }
      assert_equal "#{File.join(@log, "config.rb")}:2: #{message}", error.message
    end
  end

  def test_every_option_is_a_method
    set = config(<<~RUBY)
      workers 3
      bind "a:1", "b:2"
      bind "c:3"
      preload false
      reuse_port
      idle_timeout "5s"
      requests_max 10..20
      env "staging"
    RUBY
    assert_equal ["3", "a:1\nb:2\nc:3", "off", "on", "5s", "10..20", "staging"],
                 %w[workers bind preload reuse_port idle_timeout requests_max env].map { |name| set[name] }
  end

  def test_names_of_other_servers
    set = config("max_workers 7\nmax_request_per_child 100\nmin_request_per_child 50\nreuseport true\nMaxWorkers 8\n").finish
    assert_equal %w[8 50..100 on], %w[workers requests_max reuse_port].map { |name| set[name] }
  end

  def test_the_command_line_wins
    assert_equal "2", config("workers 9", options.parse(%w[-w 2]))["workers"]
  end

  def test_hooks
    calls = []
    $config_calls = calls
    config(<<~RUBY)
      before_fork { $config_calls << :before }
      after_fork { |index| $config_calls << index }
      after_fork ->(index) { $config_calls << index + 1 }
      on_worker_exit { |pid, status, reason| $config_calls << [pid, status, reason] }
      server_ready -> { $config_calls << :ready }
    RUBY
    @hooks.run(:before_fork)
    @hooks.run!(:after_fork, 1)
    @hooks.run(:on_worker_exit, 5, 256, "exit code 1")
    @hooks.run(:server_ready, :surplus)
    @hooks.run(:before_reload)
    assert_equal [:before, 1, 2, [5, 256, "exit code 1"], :ready], calls
  end

  def test_a_hook_that_raises
    config("before_fork { raise 'hook failed' }")
    capture_log { @hooks.run(:before_fork) }
    assert_match(/hook before_fork died: RuntimeError: hook failed/, logged)
    assert_raises(RuntimeError) { @hooks.run!(:before_fork) }
  end

  def test_a_config_file_is_ruby
    set = config("require 'json'\nvalue = JSON.parse('[4]').first\nworkers value\n")
    assert_equal "4", set["workers"]
  end

  def test_mistakes_name_file_and_line
    {
      "workers 1\nwrokers 2" => /config\.rb:2: .*wrokers.*workers/,
      "workers 'many'" => /config\.rb:1: workers .*many/,
      "\n\nraise 'own mistake'" => /config\.rb:3: own mistake \(RuntimeError\)/,
      "workers(" => /config\.rb:\d+: .*syntax error/,
      "before_fork" => /config\.rb:1: before_fork needs a block/,
      "check true" => /config\.rb:1: .*check/,
    }.each do |source, message|
      error = assert_raises(Oribi::Error, source) { config(source) }
      assert_match message, error.message
      assert_equal 1, error.message.lines.size, error.message
    end
  end

  # The names of Puma and Unicorn in one file, and what is wrong with each.
  def test_all_mistakes_of_a_file_are_told_at_once
    source = <<~RUBY
      workers 2, 7
      worker_processes 4
      user "nobody", "www-data"
      port 3000, "::"
      preload_app!
      on_worker_boot { }
      state_path "tmp/state"
      workers
      idle_timeout "5s"
      after_fork { |server, worker| }
      after_fork ->(a, b) {}
      before_fork { |server, worker, more| }
      listen "/run/app.sock", backlog: 64, tcp_nopush: true
      listen ":80", umask: 0o077
      timeout 20, cleanup: 2
      ssl_bind "0.0.0.0", "9292", { key: "k" }
      listen 8080, tcp_nopush: true
      run ->(env) {}
      Nowhere.env
    RUBY
    messages = assert_raises(Oribi::Error) { config(source) }.message.lines(chomp: true)
    expected = {
      1 => /: workers takes one value, not 2: "2", "7"$/,
      2 => /: unknown option worker_processes \(Unicorn, Pitchfork\): here it is workers$/,
      3 => /: user takes one value, not 2: .* group "www-data"$/,
      4 => /: port takes one value, not 2: .* host "::"$/,
      5 => /: unknown option preload_app! \(Puma\): here it is preload$/,
      6 => /: unknown option on_worker_boot \(Puma\): here it is after_fork$/,
      7 => /: unknown option state_path \(Puma\): /,
      8 => /: workers needs a value$/,
      10 => /: after_fork is called with index; this block wants 2, as other servers give; after_fork objects: true calls it with a server and a worker$/,
      11 => /: after_fork is called with index; this block wants 2,/,
      12 => /: before_fork is called with index; this block wants 3, as other servers give$/,
      13 => /: listen takes its options behind a question mark, as in listen "\/run\/app\.sock\?backlog=64"; tcp_nopush cannot be set$/,
      14 => /: listen takes .*":80\?umask=077"$/,
      15 => /: timeout takes no options of its own, such as cleanup:$/,
      16 => /: unknown option ssl_bind \(Puma, Starman\): bind tls:/,
      17 => /: listen cannot set tcp_nopush$/,
      18 => /: unknown option run \(rackup\): this looks like a rackup file: /,
      19 => /uninitialized constant .*Nowhere/
    }
    assert_match(/config\.rb: looks like another server's: `oribi import \S+config\.rb` prints one for Oribi\z/, messages.pop)
    assert_equal(expected.keys, messages.map { |line| line[/config\.rb:(\d+):/, 1].to_i })
    expected.values.zip(messages) { |pattern, line| assert_match(pattern, line) }
  end

  def test_addresses_with_files
    set = ->(text) { config(text).then { |options| [options["bind"], options["certificate"]] } }
    address = "tls://:443?certificate=a%26b%25.pem&key=k"
    text = %(bind "tls://:443", certificate: "a&b%.pem", key: "k"\nbind ":1", ":2"\ncertificate "c", key: "k", ocsp: "o"\ncertificate "d", "k"\n)
    assert_equal ["#{address}\n:1\n:2", "c?key=k&ocsp=o\nd,k"], set.call(text)
    names = ->(line) { config(line)["acme"] }
    assert_equal "a.org,b.org?email=x+y@a.org", names[%(acme "a.org", "b.org", email: "x+y@a.org"\n)]
    assert_equal "a.org,b.org", names[%(acme %w[a.org b.org]\n)]
    assert_equal "a.org?email=x@a.org\nb.org", names[%(acme "a.org?email=x@a.org"\nacme "b.org"\n)]
    assert_match(/acme has no setting "emial": did you mean email\?/, assert_raises(Oribi::Error) { names[%(acme "a.org", emial: "x@a.org"\n)] }.message)
    { 'bind "tls://:443", certificate: "a", keyy: "b"' => /bind has no setting "keyy": did you mean key\?/,
      'bind ":443", key: "a"' => /key/,
      'bind "tls://:443?key=a", certificate: "b"' => /ADDR must not contain "\?"/ }.each do |text, words|
      assert_match words, assert_raises(Oribi::Error, text) { config(text) }.message
    end
  end

  def test_a_file_of_another_server_by_its_name
    File.write("#{@log}/unicorn.rb", "worker_proceses 2\n")
    lines = assert_raises(Oribi::Error) { Oribi::Config.load(options.set("config", "#{@log}/unicorn.rb")) }.message.lines(chomp: true)
    assert_equal 2, lines.size
    assert_equal "#{@log}/unicorn.rb: looks like another server's: `oribi import #{@log}/unicorn.rb` prints one for Oribi", lines.last
    ["worker 2\n", "workers 2\nhttp_content_length_limit 1024\n"].each do |text|
      assert_equal 1, assert_raises(Oribi::Error) { config(text) }.message.lines.size, text
    end
  end

  def test_hooks_may_take_less_than_they_are_given
    config("after_fork { }\nafter_fork ->(index, more = 1) {}\non_worker_exit { |pid| }\nafter_fork { |*all| }\nafter_fork method(:p)")
    @hooks.run!(:before_fork)
  end

  def test_a_missing_config_file
    error = assert_raises(Oribi::Error) { Oribi::Config.load(options.set("config", "/nonexistent/oribi.rb")) }
    assert_equal "config file /nonexistent/oribi.rb: no such file or directory", error.message
    Dir.chdir(@log) { assert_kind_of Oribi::Hooks, Oribi::Config.load(options) }
  end
end

# frozen_string_literal: true

require "support"
require "oribi/cli"
require "oribi/import"
require "fileutils"
require "stringio"
require "tmpdir"

# Configurations of other servers as people have them, and what is printed for them: import/*.cases has each file behind
# a line "==== NAME", and behind "---- printed" the configuration that it becomes.
class ImportTest < Minitest::Test
  FILES = Dir["#{__dir__}/import/*.cases"].sort.flat_map do |path|
    File.read(path).split(/^==== (.+)\n/).drop(1).each_slice(2).map { |name, text| [name, text.split("---- printed\n")] }
  end.to_h.freeze
  CASES = FILES.keys.sort.freeze
  FOLDER = Dir.mktmpdir("oribi-import")
  Minitest.after_run { FileUtils.rm_rf(FOLDER) }
  FILES.each do |name, (given, _)|
    FileUtils.mkdir_p(File.dirname("#{FOLDER}/#{name}"))
    File.write("#{FOLDER}/#{name}", given)
  end

  def import(name) = Dir.chdir(FOLDER) { Oribi::Import.text(name) }

  def run_cli(*argv)
    out, err = StringIO.new, StringIO.new
    [Oribi::CLI.new(out: out, err: err).run(argv), out.string, err.string]
  end

  def refused(name, content)
    Dir.mktmpdir do |dir|
      path = "#{dir}/#{name}"
      File.binwrite(path, content)
      code, out, err = run_cli("import", path)
      assert_equal [1, "", 1], [code, out, err.lines.size], err
      err.sub("#{dir}/", "").chomp
    end
  end

  def with_env(pairs)
    before = ENV.to_h
    ENV.update(pairs)
    yield
  ensure
    ENV.replace(before)
  end

  def test_there_are_ten_of_puma_and_eight_of_the_others
    assert_operator CASES.grep(/\Apuma/).size, :>=, 10
    assert_operator CASES.grep(/\A(unicorn|pitchfork|rainbows|rhebok)/).size, :>=, 8
    assert_operator CASES.grep(/lines/).size, :>=, 12
  end

  # Case => what --print-config says of the configuration that is printed for it.
  VALUES = {
    "puma-cluster.rb" => ["workers = 2", "threads = 6", "boot_timeout = 30s", "shutdown_timeout = 25s", "idle_timeout = 20s", "head_timeout = 15s",
                          "refork_after = 500"],
    "puma-social.rb" => ["idle_timeout = 20s", "threads = 5", "bind = tcp://127.0.0.1:3000", "workers = 2", "preload = on", "env = development"],
    "puma-gitlab.rb" => ["pid_file = /tmp/puma.pid", "error_log = /tmp/puma.stderr.log", "threads = 4", "call_timeout = 1m", "shutdown_timeout = 63s",
                         "workers = 3"],
    "puma-rails8.rb" => ["threads = 3", "port = 3000", "workers = 1"],
    "unicorn-rails.rb" => ["workers = 3", "call_timeout = 15s", "bind = 0.0.0.0:8080", "preload = on"],
    "unicorn-capistrano.rb" => ["workers = 2", "call_timeout = 2m", "bind = /tmp/unicorn.sock?backlog=1024&umask=007"],
    "unicorn-classic.rb" => ["workers = 4", "user = www-data", "group = www-data", "call_timeout = 30s", "pid_file = /tmp/unicorn.pid"],
    "pitchfork.conf.rb" => ["workers = 4", "call_timeout = 20s"],
    "rainbows.conf.rb" => ["workers = 2", "bind = 8080"],
    "lines/thin-line" => ["host = 127.0.0.1", "port = 4567", "workers = 2", "env = production", "connections_max = 512", "daemonize = on"],
    "lines/passenger.procfile" => ["host = 0.0.0.0", "port = 3000", "workers = 3", "memory_max = 512M"],
    "settings/thin.yml" => ["host = 127.0.0.1", "port = 3000", "workers = 3", "connections_max = 1024", "chdir = /", "daemonize = on"],
    "settings/thin-socket.yml" => ["user = www-data", "workers = 2", "threads = 20", "bind = unix:///tmp/thin.sock"],
    "settings/Passengerfile.json" => ["host = 0.0.0.0", "port = 80", "workers = 6", "memory_max = 512M", "restart_file = tmp/restart.txt"],
    "settings/passenger-socket.json" => ["threads = 8", "call_timeout = 1m", "queue_max = 200", "restart_file = shared/restart.txt"],
    "lines/Dockerfile" => ["host = 0.0.0.0", "port = 3000"],
    "lines/Dockerfile.shell" => ["bind = tcp://0.0.0.0:3000", "workers = 2", "threads = 5", "access_log = -"],
    "lines/rhebok.procfile" => ["port = 3000", "workers = 10", "requests_max = 800..1000", "oob_gc = on", "env = production"],
    "lines/unicorn.service" => ["bind = 127.0.0.1:8080", "workers = 1", "env = production", "daemonize = off"]
  }.freeze

  PARSERS = [Oribi::Import::Parser::OfRipper, *(Oribi::Import::Parser::OfPrism if Oribi::Import::Parser::OfPrism.load)].freeze

  def with_parser(parser)
    before = Oribi::Import::Parser.current
    Oribi::Import::Parser.current = parser
    yield
  ensure
    Oribi::Import::Parser.current = before
  end

  def test_both_parsers_give_the_same
    skip "Prism is not installed (gem install prism)" unless PARSERS.size == 2
    CASES.grep(/rb\z/).each do |name|
      assert_equal with_parser(PARSERS.first) { import(name) }, with_parser(PARSERS.last) { import(name) }, name
    end
  end

  def test_mistakes_have_their_line
    PARSERS.each do |parser|
      with_parser(parser) do
        assert_match(/\Aoribi: puma\.rb:3: syntax error/, refused("puma.rb", "workers 2\n\nthreads 1 2\n"))
        assert_match(/\Aoribi: puma\.rb:[23]: syntax error/, refused("puma.rb", "workers 2\nthreads (\n"))
      end
    end
  end

  CASES.each do |name|
    define_method("test_#{name}") do
      printed = import(name)
      assert_equal FILES.fetch(name).last, printed
      lines = options_of(printed)
      assert_includes lines.join("\n"), "workers = "
      assert_empty VALUES.fetch(name, []) - lines
    end
  end

  # Options as a server with this configuration would have them.
  def options_of(printed)
    Dir.mktmpdir do |dir|
      File.write("#{dir}/oribi.rb", printed)
      here = Dir.pwd
      code, out, err = with_env("PORT" => "3000") { run_cli("--print-config", "--config", "#{dir}/oribi.rb") }
      Dir.chdir(here) # some have a working directory
      assert_equal [0, ""], [code, err]
      out.lines(chomp: true)
    end
  end

  def test_nothing_is_evaluated
    Dir.mktmpdir do |dir|
      File.write("#{dir}/puma.rb", "#!/usr/bin/env puma\nworkers 2\nFile.write(#{"#{dir}/was_here".inspect}, '')\nBEGIN { exit!(7) }\n")
      code, out, = run_cli("import", "#{dir}/puma.rb")
      assert_equal 0, code
      assert_includes out, "workers 2\n"
      refute_includes out, "#!"
      refute_path_exists "#{dir}/was_here"
    end
  end

  def test_bad_input_is_one_line
    assert_equal "oribi: puma.rb: is a binary file", refused("puma.rb", "workers 2\n\0")
    assert_equal "oribi: puma.rb: is empty", refused("puma.rb", "\uFEFF\n")
    assert_equal "oribi: puma.rb: is empty", refused("puma.rb", "\n")
    assert_match(/\Aoribi: puma\.rb: is longer than 1048576 bytes/, refused("puma.rb", "#" * 1_048_577))
    assert_includes import_text("other.rb", "workers 0\nthreads 2, 2\nbind 'tcp://127.0.0.1:3000'\n"), "(Puma)."
    assert_equal "oribi: other.rb: has no word of Puma, Unicorn, Pitchfork, Rainbows or Rhebok", refused("other.rb", "foo 1\n")
    assert_match(/\Aoribi: Procfile: starts no server that import knows, which are Puma, .*; its first command is falcon serve$/,
                 refused("Procfile", "web: falcon serve\n"))
    assert_match(/\Aoribi: Procfile: iodine is no server that import knows, which are Puma, /, refused("Procfile", "web: rackup -s iodine\n"))
    assert_equal "oribi: Procfile: has no command", refused("Procfile", "# web: puma\n")
    assert_match(/\Aoribi: Procfile: starman serves Perl: oribi-psgi import /, refused("Procfile", "web: starman app.psgi\n"))
    assert_match(/\Aoribi: uwsgi\.ini: an ini file is uWSGI's: oribi-psgi import /, refused("uwsgi.ini", "[uwsgi]\npsgi = app.psgi\n"))
    assert_match(/\Aoribi: Procfile: a quote that is not closed/, refused("Procfile", "web: puma -p '3\n"))
    assert_match(/\Aoribi: Dockerfile: starts no server that import knows/, refused("Dockerfile", "CMD [\"nginx\"]\n"))
  end

  def import_text(name, content)
    Dir.mktmpdir do |dir|
      File.binwrite("#{dir}/#{name}", content)
      Oribi::Import.text("#{dir}/#{name}")
    end
  end

  def test_settings_that_are_bad_are_one_line
    assert_equal "oribi: thin.yml:2: syntax error: did not find expected node content while parsing a flow node", refused("thin.yml", "port: 3\nuser: [,\n")
    assert_equal "oribi: thin.yml: is a list, not a mapping of settings", refused("thin.yml", "- port\n- 3\n")
    assert_equal "oribi: thin.yml: is one value, not a mapping of settings", refused("thin.yml", "port\n")
    assert_equal "oribi: thin.yml: has no setting of Thin", refused("thin.yml", "services:\n  web: thin\n")
    assert_equal "oribi: thin.yml: has aliases (*name), which import does not follow: write out what they stand for",
                 refused("thin.yml", "a: &a\n  port: 3\nb: *a\n")
    assert_match(/\Aoribi: thin\.yml: has a value of Ruby's class \S+, which import does not make: write it as text\z/,
                 refused("thin.yml", "port: !ruby/object:Object {}\n"))
    assert_match(/class Date, which import does not make/, refused("thin.yml", "port: 2026-01-01\n"))
    assert_equal "oribi: thin.yml: has several documents, of which Thin reads one", refused("thin.yml", "port: 1\n---\nport: 2\n")
    assert_equal "oribi: Passengerfile.json: is nothing, not a mapping of settings", refused("Passengerfile.json", "null")
    assert_equal "oribi: Passengerfile.json: has no setting of Passenger", refused("Passengerfile.json", "{}")
    assert_match(/\Aoribi: Passengerfile\.json: syntax error: \S/, refused("Passengerfile.json", %({"port": 3,\n)))
    %w[thin.yml Passengerfile.json].each do |name|
      assert_equal "oribi: #{name}: is nested more than 20 deep, which no configuration is", refused(name, "#{"[" * 50_000}#{"]" * 50_000}")
    end
  end

  # Values of types that do not fit, and names that would end the comment they stand in.
  def test_settings_that_do_not_fit_stay_as_comments
    settings = %({"port": {"a": 1}, "user": ["a", ["b"]], "max_pool_size": "many", "log_file": null, "x\\nexit!": 1, "address": ""})
    text = import_text("Passengerfile.json", settings)
    assert_equal <<~TEXT, text.lines[4..].join[/.*?(?=\n# What)/m]
      # Not taken over: a mapping, where one value is meant
      #   port: {"a":1}
      # Not taken over: a list of lists or mappings
      #   user: ["a",["b"]]
      # Not taken over: workers must be a whole number from 0 to 512, not "many"
      #   max_pool_size: "many"
      # Not taken over: it has no value
      #   log_file: null
      # Not taken over: not an option that import knows
      #   "x\\nexit!": 1
      # address: ""
      host ""
    TEXT
    assert_includes import_text("thin.yml", "port: '<%= 1); exit!; (2 %>'\n"), "# Not taken over: what stands between <% and %>"
    assert_includes import_text("thin.yml", "? \"port\\nexit!\"\n: 1\nport: 2\n"), %(#   "port\\nexit!": 1\n)
  end

  def test_settings_that_a_line_names
    Dir.mktmpdir do |dir|
      Dir.mkdir("#{dir}/config")
      File.write("#{dir}/config/thin.yml", "port: 4000\nservers: 2\n")
      File.write("#{dir}/Procfile", "web: bundle exec thin start -C config/thin.yml -e production\n")
      text = Oribi::Import.text("#{dir}/Procfile")
      assert_includes text, "# Start: web: bundle exec oribi --env production\n"
      assert_includes text, "port 4000\n"
      File.write("#{dir}/Passengerfile.json", %({"max_pool_size": 3}))
      File.write("#{dir}/Procfile", "web: passenger start -p 80\n")
      text = Oribi::Import.text("#{dir}/Procfile")
      assert_includes text, "# Start: web: oribi --port 80\n"
      assert_includes text, "workers 3\n"
      refute_includes text, "port 3000"
    end
  end

  def test_a_file_that_takes_too_long
    assert_equal "oribi: puma.rb: is too long to be taken apart", refused("puma.rb", "before_fork do\n#{"x\n" * 20_000}end\n")
    assert_includes import_text("puma.rb", "before_fork do\n#{"  x\n" * 2000}end\nworkers 7\n"), "workers 7\n"
  end

  def test_a_file_of_the_largest_size_is_read
    assert_includes import_text("puma.rb", "workers 2\n#{"#" * 1_048_565}\n"), "workers 2\n"
  end

  def test_line_ends_marks_and_encodings
    assert_includes import_text("puma.rb", "\uFEFFworkers 2\r\nport 3000\r\n"), "workers 2\nport 3000\n"
    text = import_text("puma.rb", "# caf\xe9\nworkers 2\n".b)
    assert_includes text, "# The file was Latin-1; this one is UTF-8.\n"
    assert_includes text, "# café\nworkers 2\n"
    assert_includes import_text("puma.rb", "# -*- coding: latin-1 -*-\nworkers 2 # \xe9\n".b), "# -*- encoding: utf-8 -*-\nworkers 2 # é\n"
  end

  def test_what_is_evaluated_stays_as_a_comment
    text = import_text("puma.rb", "folder = eval('1')\nworkers eval('2')\ninstance_eval(File.read('x'))\nchdir folder\nport 80\ndef at = folder\n")
    assert_equal <<~TEXT, text.lines.drop(4).join
      # Not taken over (line 1): eval: import evaluates nothing; write out what it makes, then import that
      #   folder = eval('1')
      # Not taken over (line 2): eval: import evaluates nothing; write out what it makes, then import that
      #   workers eval('2')
      # Not taken over (line 3): instance_eval: import evaluates nothing; write out what it makes, then import that
      #   instance_eval(File.read('x'))
      # Not taken over (line 4): it needs folder, which is not taken over
      #   chdir folder
      port 80
      # Not taken over (line 6): it needs folder, which is not taken over
      #   def at = folder

      # What Puma does unless told otherwise:
      threads 5 unless ENV["RAILS_MAX_THREADS"]
    TEXT
  end

  def test_addresses_that_meet
    text = import_text("puma.rb", "workers 1\nthreads 1\nport ENV['PORT'] || 80\nbind 'tcp://0.0.0.0:81'\nbind '0.0.0.0:81'\nport 82, '::1'\n")
    assert_includes text, %(bind "0.0.0.0:\#{ENV['PORT'] || 80}"\n)
    assert_includes text, "# Not taken over (line 5): the same address is bound above\n"
    assert_includes text, %(bind "[::1]:82"\n)
    assert_includes options_of(text), "bind = [::1]:82"
  end

  def test_every_address_of_unicorn_and_its_ipv6only
    text = import_text("unicorn.rb", "listen '[::]:81', ipv6only: true\nlisten '[::]:82', ipv6only: false, backlog: 7\nlisten '[::]:83'\n")
    assert_includes text, "# listen in Unicorn\nbind \"[::]:81?ipv6only=on\"\n# listen in Unicorn\nbind \"[::]:82?backlog=7\"\n"
    assert_equal %w[[::]:81?ipv6only=on [::]:82?backlog=7 [::]:83], options_of(text).grep(/\Abind/).map { |line| line.sub("bind = ", "") }
  end

  # Beside an address a host is an error here.
  def test_a_host_beside_an_address_is_a_comment
    text = import_text("puma.rb", "default_host '::1'\nset_default_host '::2'\nbind 'tcp://0.0.0.0:81'\n")
    assert_equal 2, text.scan("the addresses of bind say their hosts").size
    assert_includes options_of(text), "bind = tcp://0.0.0.0:81"
    text = import_text("Passengerfile.json", '{ "address": "127.0.0.1", "port": 81, "socket_file": "/tmp/a.sock" }')
    assert_includes text, "a socket takes the place of the host"
    assert_includes options_of(text), "bind = unix:///tmp/a.sock"
    assert_includes options_of(import_text("puma.rb", "set_default_host '::1'\n")), "host = ::1"
  end

  # Statement => what is printed for it, behind the head.
  STATEMENTS = {
    "threads(1, 5)" => "threads 1, 5",
    "workers(ENV['X']\n  .to_i)" => "workers ENV['X']\n  .to_i",
    "port 3000 # as nginx has it" => "port 3000 # as nginx has it", "threads 1, # few\n  5 # many" => "# few\n# many\nthreads 1, 5",
    "preload_app!(false)" => "# preload_app! in Puma\npreload false",
    "quiet if ENV['Q'] && (a unless b)" =>
      "# quiet in Puma; quiet is about warnings here; in Puma it is about requests\naccess_log \"off\" if ENV['Q'] && (a unless b)",
    "workers 0" => "# 0 is a single process in Puma, and one worker for each CPU here; `single true` instead is one process here\nworkers 1",
    "workers ENV.fetch('W', 0)" => "# 0 is a single process in Puma, and one worker for each CPU here: give it 1\nworkers ENV.fetch('W', 0)",
    "listen ENV['A'], backlog: 5" => "# listen in Puma\nbind \"\#{ENV['A']}?backlog=5\"",
    "workers = 3" => "workers = 3",
    "workers((ENV['W'] || 2).to_i)" => "workers((ENV['W'] || 2).to_i)",
    "workers Etc.nprocessors # all" => "require \"etc\" # Puma has it loaded\nworkers Etc.nprocessors # all",
    "before_fork do\n  PumaWorkerKiller.start\nend" =>
      "# Not taken over (line 1): PumaWorkerKiller is about Puma's workers: memory_max replaces those that grow\n" \
      "#   before_fork do\n#     PumaWorkerKiller.start\n#   end",
    "max_fast_inline Float::INFINITY" => "# max_fast_inline in Puma; 0 is no limit\nkeepalive_requests_max 0",
    "if Puma.stats\n  quiet\nend" => "# Not taken over (line 1): Puma is not loaded under Oribi\n#   if Puma.stats\n#     quiet\n#   end",
    "bind \"tcp://0.0.0.0:\#{ENV['P']}\"\nport ENV['P'].to_i" => "bind \"tcp://0.0.0.0:\#{ENV['P']}\"\n" \
      "# Not taken over (line 2): the same address is bound above\n#   port ENV['P'].to_i",
    "user *%w[a b]" => "# Not taken over (line 1): its values can only be told by evaluating them\n#   user *%w[a b]",
    "before_fork &block" => "# Not taken over (line 1): before_fork takes a block here\n#   before_fork &block",
    "workers 2; threads 1" => "# Not taken over (line 1): workers: within Ruby that import does not take apart\n#   workers 2; threads 1",
    "puts Puma::Const::VERSION" => "# Not taken over (line 1): Puma is not loaded under Oribi\n#   puts Puma::Const::VERSION"
  }.freeze

  def test_statements
    Dir.mktmpdir do |dir|
      STATEMENTS.to_a.product(PARSERS).each do |(source, printed), parser|
        Oribi::Import::Parser.current = parser
        File.write("#{dir}/puma.rb", "#{source}\n")
        assert_equal "#{printed}\n", Oribi::Import.text("#{dir}/puma.rb").lines.drop(4).join.sub(/\n# What Puma does.*\z/m, "")
      end
    end
  end

  # Pieces of the cases in any order: Ruby is made of them, or they are refused in a line.
  def test_what_is_printed_is_ruby
    lines = CASES.grep(/\A[^l]/).flat_map { |name| File.readlines("#{FOLDER}/#{name}") } + STATEMENTS.keys.map { |source| "#{source}\n" }
    random = Random.new(7)
    made = 0
    Dir.mktmpdir do |dir|
      200.times do
        File.write("#{dir}/puma.rb", Array.new(random.rand(1..6)) { lines.sample(random: random) }.join)
        assert Oribi::Import::Sexp.statements(Oribi::Import.text("#{dir}/puma.rb")), File.read("#{dir}/puma.rb")
        made += 1
      rescue Oribi::Error => e
        assert_equal 1, e.message.lines.size
      end
    end
    assert_operator made, :>, 50
  end

  def test_what_is_no_file
    code, out, err = run_cli("import", "/nowhere/puma.rb")
    assert_equal [1, "", "oribi: /nowhere/puma.rb: cannot be read: no such file or directory\n"], [code, out, err]
    code, out, err = run_cli("import")
    assert_equal [1, "", "oribi: import takes one file, as in: oribi import config/puma.rb\n"], [code, out, err]
    assert_equal "oribi: import: unknown option -x: there are -o FILE, --force and --help\n", run_cli("import", "-x", "puma.rb").last
    assert_match(/: is a directory$/, run_cli("import", "/tmp").last)
  end

  def test_a_program_of_supervisord
    text = import_text("shop.conf", "[program:shop]\ncommand=/srv/env.sh bundle exec unicorn -E production -D -c none.rb\nuser=x\n")
    assert_includes text, "# Start: command=/srv/env.sh bundle exec oribi\n"
    assert_includes text, "# Not taken over: what starts it keeps it in the foreground\n#   -D\n"
  end

  # Found by files that were changed at random.
  def test_odd_words
    assert_includes import_text("Procfile", "web: puma -p 3 -- config.ru\n"), "# Start: web: oribi config.ru"
    assert_nil Oribi::Import::Sexp.mistake(import_text("Dockerfile", %(CMD ["puma", "-b", "0\\n.0.0", "a\\nb.ru"]\n)))
    assert_match(/its first command is sh -c 'a b'\z/, refused("Dockerfile", %(CMD ["sh", "-c", "a\\nb"]\n)))
    assert_match(/puma\.rb: cannot be taken apart: line/, refused("puma.rb", "max_keep_alive Float:\n"))
    assert_includes import_text("puma.rb", "bind 'unix:///tmp/é%zz?x=é'\nport 80\n"), "é"
  end

  def test_variables_that_are_flags
    text = import_text("Procfile", "web: puma $PUMA_OPTS -w 3 config.ru\n")
    assert_includes text, "# Start: web: oribi config.ru\n"
    assert_match(/^# Not taken over: the shell makes more words of it.*\n#   \$PUMA_OPTS\n/, text)
  end

  def test_a_command_line_as_arguments
    code, out, = run_cli("import", "--", "bundle", "exec", "puma", "-w", "3", "-b", "unix:///tmp/a b.sock", "-t", "1:5")
    assert_equal 0, code
    assert_includes out, "# Start: bundle exec oribi\n"
    assert_includes options_of(out), "bind = unix:///tmp/a b.sock"
    assert_match(/\Aoribi: the command line: starts no server that import knows.*; its first command is falcon serve$/,
                 run_cli("import", "--", "falcon", "serve").last)
  end

  def test_output_to_a_file
    Dir.mktmpdir do |dir|
      FileUtils.cp("#{FOLDER}/puma-rails8.rb", "#{dir}/puma.rb")
      code, out, err = run_cli("import", "#{dir}/puma.rb", "-o", "#{dir}/new.rb")
      assert_equal [0, "#{dir}/new.rb: 4 settings taken over, 1 left as a comment. Next: oribi check --config #{dir}/new.rb\n", ""], [code, out, err]
      assert_includes File.read("#{dir}/new.rb"), "# Try it: oribi check --config #{dir}/new.rb\n"
      File.write("#{dir}/new.rb", "mine\n")
      assert_equal "oribi: #{dir}/new.rb: exists already; --force overwrites it\n", run_cli("import", "-o", "#{dir}/new.rb", "#{dir}/puma.rb").last
      Dir.chdir(dir) do # the folder is made
        assert_match(%r{\Aconfig/oribi\.rb: \d+ settings}, run_cli("import", "-o", "config/oribi.rb", "puma.rb")[1])
      end
      assert_equal "mine\n", File.read("#{dir}/new.rb")
      assert_equal 0, run_cli("import", "--force", "-o", "#{dir}/new.rb", "#{dir}/puma.rb").first
      assert_includes File.read("#{dir}/new.rb"), "threads "
      assert_equal "oribi: #{dir}/none/x.rb: cannot be written: no such file or directory\n",
                   run_cli("import", "--output=#{dir}/none/x.rb", "#{dir}/puma.rb").last
    end
  end

  # Line => the new one, where config/puma.rb is there.
  COMMANDS = {
    "web: cd app && bundle exec puma -t 5:5 -p ${PORT:-3000} -C config/puma.rb 2>&1" =>
      "web: cd app && bundle exec oribi --threads 5:5 --port ${PORT:-3000} 2>&1",
    "web: bundle exec puma" => "web: bundle exec oribi",
    "web: sh -c 'exec bundle exec puma -C /srv/app/config/puma.rb app.ru'" => "web: sh -c 'exec bundle exec oribi app.ru'",
    "web: A=1 bin/rails s -p 5000 -b '0.0.0.0'" => "web: A=1 bundle exec oribi --port 5000 --host 0.0.0.0",
    "web: /usr/local/bin/puma -w $(nproc) -e staging | tee log" => "web: /usr/local/bin/oribi --env staging | tee log",
    "web: bin/puma -b 'unix:///tmp/a b' --preload" => "web: bin/oribi --bind 'unix:///tmp/a b' --preload"
  }.freeze

  def test_a_file_that_a_line_names_is_read_and_the_line_stays_a_line
    Dir.mktmpdir do |dir|
      Dir.mkdir("#{dir}/config")
      File.write("#{dir}/config/puma.rb", "workers 3\nthreads 2\n__END__\nx\n")
      COMMANDS.each do |line, start|
        File.write("#{dir}/Procfile", "#{line}\njobs: sidekiq\n")
        text = Oribi::Import.text("#{dir}/Procfile")
        assert_includes text, "# Start: #{start}\n"
        assert_includes text, "# Left as it is: jobs: sidekiq\n"
        assert_includes text, "workers 3\nthreads 2\n"
        refute_includes text, "__END__"
      end
    end
  end

  def test_hooks_with_a_server_and_a_worker
    options = Oribi::Options.new
    options.set("workers", 3).set("pid_file", "/tmp/x.pid").set("call_timeout", 20)
    seen = []
    source = <<~RUBY
      before_fork(objects: true) { |server, worker| $seen << [server.pid, server.config[:pid], server.config[:timeout], worker.nr] }
      after_fork(objects: true) { |server, worker| $seen << [server.worker_processes, worker.nr, worker.index, worker.pid] }
      on_worker_exit(objects: true) { |server, worker, status| $seen << [worker.pid, worker.nr, status.success?, status.exitstatus, status.signaled?] }
      server_ready objects: true do |server| $seen << server.logger.class end
    RUBY
    $seen = seen
    hooks = Oribi::Hooks.new
    Dir.mktmpdir do |dir|
      File.write("#{dir}/oribi.rb", source)
      options.set("config", "#{dir}/oribi.rb")
      Oribi::Config.load(options, hooks)
    end
    hooks.run!(:before_fork, 1)
    hooks.run!(:after_fork, 2)
    hooks.run!(:on_worker_exit, 77, 9, "killed", 4)
    hooks.run!(:on_worker_exit, 78, 256, "exited", 5)
    hooks.run!(:server_ready)
    assert_equal [["/tmp/x.pid", "/tmp/x.pid", 20, 1], [3, 2, 2, Process.pid], [77, 4, nil, nil, true], [78, 5, false, 1, false], Logger], seen
  end
end

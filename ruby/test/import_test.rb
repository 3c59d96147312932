# frozen_string_literal: true

require "support"
require "oribi/cli"
require "oribi/import"
require "stringio"
require "tmpdir"

# Configurations of other servers as people have them, and what is printed for them: import/ and import/expected/.
class ImportTest < Minitest::Test
  FOLDER = File.expand_path("import", __dir__)
  CASES = Dir.chdir(FOLDER) { Dir["*.rb", "lines/*"].sort }

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
    assert_equal [10, 8, 5], [CASES.grep(/\Apuma/).size, CASES.grep(/\A(unicorn|pitchfork|rhebok)/).size, CASES.grep(/lines/).size]
  end

  CASES.each do |name|
    define_method("test_#{name}") do
      printed = import(name)
      assert_equal File.read("#{FOLDER}/expected/#{File.basename(name)}"), printed
      Dir.mktmpdir do |dir|
        File.write("#{dir}/oribi.rb", printed)
        with_env("PORT" => "3000") do
          here = Dir.pwd
          code, out, err = run_cli("--print-config", "--config", "#{dir}/oribi.rb")
          Dir.chdir(here) # some have a working directory
          assert_equal [0, ""], [code, err]
          assert_match(/^workers = /, out)
        end
      end
    end
  end

  def test_values_arrive
    Dir.mktmpdir do |dir|
      File.write("#{dir}/oribi.rb", import("puma-cluster.rb"))
      _, out, = run_cli("--print-config", "--config", "#{dir}/oribi.rb")
      ["workers = 2", "threads = 6", "boot_timeout = 30s", "shutdown_timeout = 25s", "idle_timeout = 20s", "head_timeout = 15s",
       "refork_after = 500"].each { |line| assert_includes out.lines(chomp: true), line }
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
    assert_match(/\Aoribi: puma\.rb:2: syntax error/, refused("puma.rb", "workers 2\nthreads (\n"))
    assert_equal "oribi: puma.rb:2: eval: import evaluates nothing; write out what it makes, then import that",
                 refused("puma.rb", "workers 2\neval File.read('x')\n")
    assert_match(/\Aoribi: puma\.rb:1: instance_eval: /, refused("puma.rb", "instance_eval(File.read('x'))\n"))
    assert_equal "oribi: puma.rb: is a binary file", refused("puma.rb", "workers 2\n\0")
    assert_equal "oribi: puma.rb: is a binary file", refused("puma.rb", "workers 2 # \xff\n")
    assert_equal "oribi: puma.rb: is empty", refused("puma.rb", "\n")
    assert_match(/\Aoribi: puma\.rb: is longer than 65536 bytes/, refused("puma.rb", "#" * 65_537))
    assert_equal "oribi: other.rb: has no word of Puma, Unicorn, Pitchfork or Rhebok", refused("other.rb", "foo 1\n")
    assert_equal "oribi: Procfile: has no command of Puma, Unicorn, Pitchfork, Rhebok, rackup", refused("Procfile", "web: thin start\n")
    assert_match(/\Aoribi: Procfile: starman serves Perl: oribi-psgi import /, refused("Procfile", "web: starman app.psgi\n"))
    assert_match(/\Aoribi: uwsgi\.ini: an ini file is uWSGI's: oribi-psgi import /, refused("uwsgi.ini", "[uwsgi]\npsgi = app.psgi\n"))
    assert_match(/\Aoribi: Procfile: a quote that is not closed/, refused("Procfile", "web: puma -p '3\n"))
    assert_match(/\Aoribi: Procfile: what the shell would run/, refused("Procfile", "web: puma -w $(nproc)\n"))
    assert_match(/\Aoribi: Procfile: import reads one command a line/, refused("Procfile", "web: puma && true\n"))
  end

  def test_a_file_of_the_largest_size_is_read
    assert_includes Dir.mktmpdir { |dir| File.write("#{dir}/puma.rb", "workers 2\n#{"#" * 65_525}\n") && Oribi::Import.text("#{dir}/puma.rb") }, "workers 2\n"
  end

  # Statement => what is printed for it, behind the head.
  STATEMENTS = {
    "threads(1, 5)" => "threads 1, 5",
    "workers(ENV['X']\n  .to_i)" => "workers ENV['X']\n  .to_i",
    "port 3000 # as nginx has it" => "# as nginx has it\nport 3000",
    "preload_app!(false)" => "# preload_app! in Puma\npreload false",
    "quiet if ENV['Q'] && (a unless b)" =>
      "# quiet in Puma; quiet is about warnings here; in Puma it is about requests\naccess_log \"off\" if ENV['Q'] && (a unless b)",
    "workers 0" => "# 0 is a single process in Puma; here it would be one for each CPU\nworkers 1",
    "listen ENV['A'], backlog: 5" => "# listen in Puma\nbind \"\#{ENV['A']}?backlog=5\"",
    "workers = 3" => "workers = 3",
    "user *%w[a b]" => "# Not taken over (line 1): its values can only be told by evaluating them\n#   user *%w[a b]",
    "before_fork &block" => "# Not taken over (line 1): before_fork takes a block here\n#   before_fork &block",
    "workers 2; threads 1" => "# Not taken over (line 1): workers: within Ruby that import does not take apart\n#   workers 2; threads 1",
    "puts Puma::Const::VERSION" => "# Not taken over (line 1): Puma is not loaded under Oribi\n#   puts Puma::Const::VERSION"
  }.freeze

  def test_statements
    Dir.mktmpdir do |dir|
      STATEMENTS.each do |source, printed|
        File.write("#{dir}/puma.rb", "#{source}\n")
        assert_equal "#{printed}\n", Oribi::Import.text("#{dir}/puma.rb").lines.drop(4).join
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
        assert Ripper.sexp(Oribi::Import.text("#{dir}/puma.rb")), File.read("#{dir}/puma.rb")
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
    assert_match(/: is a directory$/, run_cli("import", "/tmp").last)
  end

  def test_hooks_with_a_server_and_a_worker
    options = Oribi::Options.new
    options.set("workers", 3).set("pid_file", "/tmp/x.pid").set("call_timeout", 20)
    seen = []
    source = <<~RUBY
      before_fork(objects: true) { |server, worker| $seen << [server.pid, server.config[:pid], server.config[:timeout], worker.nr] }
      after_fork(objects: true) { |server, worker| $seen << [server.worker_processes, worker.nr, worker.index, worker.pid] }
      on_worker_exit(objects: true) { |server, worker, status| $seen << [worker.pid, status.success?, status.exitstatus, status.signaled?] }
      server_ready objects: true do |server| $seen << server.logger.class end
    RUBY
    $seen = seen
    hooks = Oribi::Hooks.new
    Dir.mktmpdir do |dir|
      File.write("#{dir}/oribi.rb", source)
      options.set("config", "#{dir}/oribi.rb")
      Oribi::Config.load(options, hooks)
    end
    hooks.run!(:before_fork)
    hooks.run!(:after_fork, 2)
    hooks.run!(:on_worker_exit, 77, 9, "killed")
    hooks.run!(:on_worker_exit, 78, 256, "exited")
    hooks.run!(:server_ready)
    assert_equal [["/tmp/x.pid", "/tmp/x.pid", 20, nil], [3, 2, 2, Process.pid], [77, nil, nil, true], [78, false, 1, false], Logger], seen
  end
end

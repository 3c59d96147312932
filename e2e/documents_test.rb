# frozen_string_literal: true

require_relative "support"
require_relative "support/pages"
require_relative "support/status"
require_relative "support/workspace"
require "open3"

# What the documents name is what the server has: keys of JSON, metrics, and blocks of code, which run as they stand
# there. Metrics' tables are compared by core/test/observe/metrics_test.c, options by core/test/config.
E2E.suite("documents", transports: %i[tcp]) do
  include E2E::InWorkspace
  include E2E::WithStatus

  def page(name) = File.read(File.join(E2E::ROOT, name))

  # The text of a section, from its heading to the next one of its level or above.
  def section(name, heading)
    level = heading[/\A#+/].size
    page(name)[/^#{Regexp.escape(heading)}\n(.*?)(?=^\#{1,#{level}} |\z)/m, 1] or flunk "#{name} has no #{heading}"
  end

  # Names in the first cells of the table that begins so.
  def first_cells(text, head)
    rows = text[/^\| #{head} \|.*?\n((?:\|.*\n)+)/, 1] or flunk "no table | #{head} |"
    rows.lines.drop(1).flat_map { |row| row.split("|")[1].scan(/`(\w+)`/).flatten }
  end

  # What looks for packages, or installs them, would be one of these.
  def test_help_of_the_scripts_installs_nothing
    Dir.mktmpdir do |dir|
      %w[apt-get dpkg-query sudo gem npm make].each do |name|
        File.write("#{dir}/#{name}", "#!/bin/sh\necho #{name} >>#{dir}/called\nexit 1\n", perm: 0o755)
      end
      %w[script/test script/server].product(%w[--help -h]).each do |script, flag|
        output, status = Open3.capture2e({ "PATH" => "#{dir}:#{ENV.fetch("PATH")}" }, File.join(E2E::ROOT, script), flag)
        assert_match(/#{script}.*\[/, output)
        assert_equal [true, false], [status.success?, File.exist?("#{dir}/called")], "#{script} #{flag}: #{output}"
      end
    end
  end

  def test_keys_of_status_json
    serve("--workers", "1")
    keys = section("doc/monitoring.md", "### The keys of /status.json")
    status = server_status
    assert_equal status.keys.sort, first_cells(keys, "key").sort
    assert_equal status["processes"].first.keys.sort, first_cells(keys, "key of a worker").sort
    ctl = E2E::Server.new(argv: [E2E::Server.binary, "ctl", "--control", @space.control, "status", "--json"]).tap(&:run_to_end)
    assert_equal status.keys - ["app"], JSON.parse(ctl.stdout).keys
    inner = keys[/^\| `queue_wait_ms`.*$/].split("|")[2].scan(/`(\w+)`/).flatten
    assert_equal status["call_time_ms"].keys, inner
    states = keys[/^\| `state` .*$/].scan(/`([a-z ]+)`/).flatten
    assert_includes states, status["state"]
  end

  def test_keys_of_stacks_json
    one = serve("--workers", "2")
    hanging = connect(one).send_raw("GET /gate HTTP/1.1\r\nHost: a\r\n\r\n")
    told = wait_until("the call") do
      workers = JSON.parse(ask("/stacks.json").body)["workers"]
      workers if workers.any? { |worker| worker["calls"]&.any? } && workers.any? { |worker| !worker["answered"] }
    end
    keys = section("doc/monitoring.md", "## Stuck and slow calls")
    assert_equal told.flat_map(&:keys).uniq.sort, first_cells(keys, "key").sort
    assert_equal told.flat_map { |worker| worker["calls"] || [] }.first.keys.sort, first_cells(keys, "key of a call").sort
    @space.open_gate
    assert_equal 200, hanging.read_response.status
  end

  def test_fields_of_history_json
    serve("--workers", "1")
    table = section("doc/monitoring.md", "## History")
    cells = table[/^\| field \|.*?\n((?:\|.*\n)+)/, 1].lines.drop(1).map { |row| row.split("|")[1] }.join(";")
    spelled = cells.gsub(/`(\w+)_p50_us`, `_p95_us`, `_p99_us`; `call_…`, `total_…`/) do
      %w[queue_wait call total].product(%w[50 95 99]).map { |name, share| "`#{name}_p#{share}_us`" }.join(",")
    end
    spelled = spelled.sub("`1xx` … `5xx`", (1..5).map { |digit| "`#{digit}xx`" }.join(","))
    assert_equal JSON.parse(ask("/history.json").body)["fields"].sort, spelled.scan(/`(\w+)`/).flatten.sort
  end

  def test_keys_of_the_access_log
    log = File.join(@space.dir, "access.log")
    one = start("--access-log", log, "--access-log-format", "json", app: @space.app)
    one.get("/", { "traceparent" => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Request-Start" => "t=#{Time.now.to_f - 1}" })
    connect(one).send_raw("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n").read_response
    connect(one).send_raw("nothing\r\n\r\n").read_response
    lines = wait_until("three lines") { File.exist?(log) && (all = File.readlines(log)).size == 3 && all }
    keys = first_cells(section("doc/logs.md", "## The access log"), "key")
    others = %w[cut tls_protocol tls_cipher messages_in messages_out] # frontend_use_test.rb, websocket_test.rb
    assert_equal keys.sort, (lines.flat_map { |line| JSON.parse(line).keys } | others).sort
  end

  # The table of `oribi check` has every id, under the level that the sources give it; notes stand in the same cells.
  def test_findings_of_check
    rows = section("doc/operations.md", "### Check")[/^\| about .*?\n((?:\|.*\n)+)/, 1].lines.drop(1).map { |row| row.split("|") }
    named = { "WRONG" => 2, "RISK" => 3 }.transform_values { |column| rows.map { |row| row[column] }.join.scan(/`([a-z0-9-]+)`/).flatten }
    said = Dir.glob("core/src/command/check*.c", base: E2E::ROOT).flat_map { |name| page(name).scan(/check_say\(([^"]*)"([a-z0-9-]+)"/) }
    assert_operator said.size, :>, 50
    said += page("core/src/frontend/certificate_check.c").scan(/say\([^"]*"(risk|wrong)", "([a-z0-9-]+)"/)
    said.each { |level, id| %w[WRONG RISK].each { |one| assert_includes named[one], id if level.upcase.match?(/\b#{one}\b/) } }
  end

  # Of the server; `oribi_meta` and the like of an operator's own are not there.
  def test_metrics_named_anywhere_are_there
    known = page("doc/monitoring.md").scan(/^\| `(oribi_\w+)` \| (\w+)/).flat_map do |name, kind|
      kind == "histogram" ? [name, *%w[_bucket _sum _count].map { |end_of| name + end_of }] : [name]
    end
    Dir.glob("{*.md,doc/*.md,examples/*/*.md,ruby/man/*,perl/lib/**/*.p{m,od},perl/bin/*}", base: E2E::ROOT).each do |name|
      named = page(name).scan(/\boribi_[a-z_]+_(?:total|seconds|bytes|bucket|sum|count|open|max|lost)\b/)
      assert_empty named.uniq - known, name
    end
  end

  # Not those for Ruby, and for who works on the server.
  def test_the_perl_module_names_the_documents
    pages = Dir.glob("*.md", base: File.join(E2E::ROOT, "doc")) - %w[ruby.md rails.md threads.md tutorial-ruby.md releasing.md]
    named = page("perl/lib/Oribi.pm")[/^=head1 DOCUMENTS\n(.*?)^=head1/m, 1].scan(/^    (\S+\.md) /).flatten
    assert_equal pages.sort, named.sort
  end

  # Where each block of commands runs that a reader may paste: page => the test that follows the whole page, or by the
  # beginning of the block the test, or ":" and why no test runs it.
  RUN = {
    "README.md" => {
      "apt-get install git" => "e2e/packaged/first_day_test.rb", "gem install" => "e2e/packaged/first_day_test.rb",
      "cpanm" => "e2e/packaged/first_day_test.rb", "script/server" => "e2e/tutorial_test.rb",
      "oribi --env production" => "e2e/tutorial_test.rb", "oribi ctl reload" => "e2e/tutorial_test.rb",
      "curl --silent" => "e2e/tutorial_test.rb"
    },
    "doc/files.md" => { "oribi --static" => "e2e/files_recipes_test.rb" },
    "doc/monitoring.md" => { "cp examples/monitoring" => "e2e/monitoring_test.rb" },
    "doc/moving/gazelle.md" => "e2e/moving_perl_test.rb", "doc/moving/starman.md" => "e2e/moving_perl_test.rb",
    "doc/moving/uwsgi.md" => "e2e/moving_perl_test.rb", "doc/moving/passenger.md" => "e2e/moving_test.rb",
    "doc/moving/puma.md" => "e2e/moving_test.rb", "doc/moving/unicorn.md" => "e2e/moving_test.rb",
    "doc/operations.md" => { "$ oribi init" => "e2e/init_test.rb", "$ oribi import" => "e2e/moving_test.rb" },
    "doc/packages.md" => {
      "apt-get install debhelper" => "e2e/packaged/first_day_test.rb", "apt-get install ./oribi_0.1.0" => "e2e/packaged/installed_test.rb",
      "cp /etc/oribi/example.rb" => "e2e/packaged/installed_test.rb", "apt-get install ./oribi_0.1.1" => "e2e/packaged/installed_test.rb",
      "script/image" => "e2e/packaged/image_test.rb"
    },
    "doc/publish.md" => { "oribi publish" => "e2e/publish_test.rb", "curl -H" => "e2e/publish_test.rb" },
    "doc/pure.md" => { "perl Pure.pm app.psgi" => ": perl/t/66-pure-bare.t runs the file alone, 65-pure-processes.t the command" },
    "doc/rails.md" => { "bundle add" => "e2e/rails_test.rb", "oribi import" => "e2e/rails_test.rb" },
    "doc/redis.md" => {
      "cpanm" => ": a distribution of its own, built by redis/perl's tests", "gem install" => ": a gem of its own, built by redis/ruby's tests"
    },
    "doc/releasing.md" => { "git clone" => ": it publishes", "gem install" => ": it looks at what was published" },
    "doc/tls.md" => {
      "oribi --acme" => "e2e/acme_test.rb",
      "oribi --bind 'tls:" => "e2e/tls_test.rb", "oribi --bind 'tcp:" => "e2e/tls_test.rb", "oribi ctl certificates" => "e2e/tls_test.rb",
      "#!/bin/sh" => "e2e/packaged/acme_test.rb", "install -d" => "e2e/packaged/acme_test.rb", "certbot" => "e2e/packaged/acme_test.rb",
      "lego" => "e2e/packaged/acme_test.rb", "oribi check @site" => "e2e/packaged/acme_test.rb"
    },
    "doc/tutorial-perl.md" => "e2e/tutorial_test.rb", "doc/tutorial-ruby.md" => "e2e/tutorial_test.rb",
    "doc/tutorial-websocket.md" => "e2e/tutorial_test.rb",
  }.freeze

  def shell_blocks
    pages = ["README.md", *Dir.glob("doc/**/*.md", base: E2E::ROOT).sort]
    pages.to_h { |name| [name, E2E::Page.new(name).blocks("sh", "console").map(&:text)] }
  end

  def test_every_block_of_commands_runs_or_says_why_not
    found = shell_blocks.reject { |_, texts| texts.empty? }
    assert_empty found.keys.sort - RUN.keys, "pages with commands that nothing runs"
    RUN.each do |name, runs|
      texts = found.fetch(name) { flunk "#{name} has no commands any more" }
      next assert_includes File.read(File.join(E2E::ROOT, runs)), File.basename(name, ".md").split("-").first, name if runs.is_a?(String)

      texts.each { |text| assert_equal 1, runs.keys.count { |begins| text.start_with?(begins) }, "#{name}: #{text}" }
      runs.each do |begins, test|
        assert texts.any? { |text| text.start_with?(begins) }, "#{name} has no block that begins with #{begins}"
        assert test.start_with?(": ") || File.file?(File.join(E2E::ROOT, test)), test
      end
    end
  end

  # What blocks of code have around them.
  BODY = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"
  RUBY_AROUND = <<~'RUBY'
    require "stringio"
    body, type = *CODE.include?("Multipart") ? [ENV.fetch("BODY"), "multipart/form-data; boundary=x"] : ["a=1", "application/x-www-form-urlencoded"]
    env = { "QUERY_STRING" => "a=1&b[]=2", "HTTP_COOKIE" => "a=1", "CONTENT_TYPE" => type, "rack.input" => StringIO.new(body) }
    buffer = "GET / HTTP/1.1\r\n\r\n"
    eval(CODE)
  RUBY
  PERL_AROUND = <<~'PERL'
    my $body = $ENV{BODY};
    open my $input, '<', \$body or die;
    our $env = { QUERY_STRING => 'a=1&b=2', HTTP_COOKIE => 'a=1', CONTENT_TYPE => 'multipart/form-data; boundary=x',
        CONTENT_LENGTH => length $body, 'psgi.input' => $input };
    our $buffer = "GET / HTTP/1.1\r\n\r\n";
  PERL

  # Words of a configuration file; bind is no function of Perl's own there.
  BEFORE = E2E::RUBY ? "" : "BEGIN { package Words; *{\"main::$_\"} = sub {} for qw(bind acme acme_terms history static) }\n"

  def blocks(name, language) = page(name).scan(/^```#{language}\n(.*?)^```$/m).flatten

  def interpreter
    return %W[ruby -W1 -I#{E2E::ROOT}/ruby/lib] if E2E::RUBY

    ["perl", *%w[perl redis/perl].flat_map { |folder| %W[-I#{E2E::ROOT}/#{folder}/blib/lib -I#{E2E::ROOT}/#{folder}/blib/arch] }]
  end

  def runs(name, code)
    code = E2E::RUBY ? "CODE = #{code.dump}\n#{RUBY_AROUND}" : "use strict; use warnings FATAL => 'all';\n#{PERL_AROUND}#{code}"
    there = E2E::RUBY && name == "doc/monitoring.md" ? %w[-roribi/metrics] : [] # as under oribi
    output, status = Open3.capture2e({ "BODY" => BODY }, *interpreter, *there, "-", stdin_data: code)
    assert status.success?, "#{name}: #{code}\n#{output}"
  end

  # Blocks of these pages stand for themselves; those of others are parts of something, and are compiled. Those of
  # doc/files.md are e2e/files_recipes_test.rb's.
  def test_blocks_of_code
    alone = %w[doc/forms.md doc/http-parser.md doc/monitoring.md]
    (Dir.glob("doc/*.md", base: E2E::ROOT).sort - ["doc/files.md"]).each do |name|
      blocks(name, E2E::RUBY ? "ruby" : "perl").each do |code|
        next runs(name, code) if alone.include?(name) && !code.match?(/^\s*(?:run|use|status|class)\b(?! Oribi)/)

        output, status = Open3.capture2e(*interpreter, "-c", "-", stdin_data: BEFORE + code)
        assert status.success?, "#{name}: #{code}\n#{output}"
      end
    end
  end
end

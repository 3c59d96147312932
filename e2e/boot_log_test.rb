# frozen_string_literal: true

require_relative "support"

# What the log says of a start and of a reload: versions, options, and where an application stands that loads for long.
E2E.suite("boot_log", transports: [:tcp]) do
  slow = E2E::RUBY ? <<~RUBY : <<~PERL
    def wait = sleep(5.4)
    wait
    run ->(_env) { [200, {}, ["loaded"]] }
  RUBY
    use strict;
    sub wait_long { my $n = 5.4; select undef, undef, undef, $n }
    wait_long();
    sub { [200, [], ["loaded"]] };
  PERL
  words = { "status" => '"./status.sock"', "status_token" => '"s3cret"', "header" => '"X-A", "b"' }
  file = ->(given) { words.merge(given).map { |name, arguments| "#{name} #{arguments};\n" }.join }

  define_method(:start_with_file) do |app, given, *more|
    @dir = Dir.mktmpdir("oribi-e2e")
    File.write(@app = "#{@dir}/app#{E2E.differing(:app_extension)}", app)
    File.write(@config = "#{@dir}/config", file.call(given))
    start("--chdir", @dir, "--config", @config, *more, app: @app)
  end

  define_method(:teardown) do
    super()
    FileUtils.remove_entry(@dir) if @dir
  end

  define_method(:test_a_slow_start_says_where_it_stands_and_a_reload_what_has_changed) do
    one = start_with_file(slow, { "call_timeout" => "30" })
    wait_until("the reload's beginning; #{one.stderr}") { one.stderr.include?("listening on") }
    language = E2E::RUBY ? "ruby" : "perl"
    assert_match(/info: \S+ \d\S* \(#{language} \d+\.\d+\.\d+\), environment development, pid #{one.pid}: header X-A:b, .*workers 1, /, one.stderr)
    assert_match(/ status_token \(not shown\), call_timeout 30s, dev off, chdir /, one.stderr)
    refute_includes one.stderr, "s3cret"
    assert_match(%r{has been loading for 5 s \(mold, pid \d+\), it stands at #{@app}:#{E2E::RUBY ? 1 : 2}; waiting}, one.stderr)
    assert_match(/the application has loaded in ([5-9]|\d{2,})\.\d\d s#{" \\(rack [\\d.]+\\)" if E2E::RUBY}$/, one.stderr)

    File.write(@app, slow.sub("5.4", "0.1"))
    File.write(@config, file.call({ "call_timeout" => "60", "error_log_format" => '"json"' }))
    one.signal(:HUP)
    wait_until("the reload; #{one.stderr}") { one.stderr.include?("reload done") }
    changed = one.stderr.lines.find { |line| line.include?("reload: call_timeout") }
    entry = JSON.parse(changed)
    assert_equal "reload: call_timeout 30s → 1m, error_log_format text → json", entry["message"]
    assert_equal({ "call_timeout" => %w[30s 1m], "error_log_format" => %w[text json] }, entry["changed"])
    loaded = one.stderr.lines.grep(/generation 2: the application has loaded/).first
    assert_match(/loaded in [0-4]\.\d\d s/, loaded) # and not in 5.4
  end
end

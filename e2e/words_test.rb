# frozen_string_literal: true

require_relative "support"

# Words of the configuration file that take several arguments, what --print-config makes of them, and what is said of
# folders that are not there.
E2E.suite("words", transports: %i[tcp]) do
  include E2E::Home

  def setup
    super
    file("public/assets/app.js", "one")
    file("public/index.html", "<p>")
    file(E2E::RUBY ? "config.ru" : "app.psgi", E2E::RUBY ? 'run ->(_) { [200, {}, ["app"]] }' : "sub { [200, [], ['app']] }")
  end

  def config(ruby, perl) = file("config/oribi#{E2E::RUBY ? ".rb" : ".pl"}", E2E::RUBY ? ruby : perl)

  def library
    return { "RUBYLIB" => File.join(E2E::ROOT, "ruby/lib") } if E2E::RUBY

    { "PERL5LIB" => %w[perl/blib/lib perl/blib/arch].map { |dir| File.join(E2E::ROOT, dir) }.join(":") }
  end

  def launched(*words)
    argv = [E2E::Server.binary, "-b", "127.0.0.1:%{port}", "-w", "1", *words.map { |word| word.gsub("%", "%%") }]
    E2E::Server.new(argv: argv, env: { "E2E_CHDIR" => @home, **library }).tap { |one| @servers << one }
  end

  def printed(*words) = launched("--print-config", *words).run_to_end.then { |one| one.stdout.lines(chomp: true).grep(/\Astatic /) }

  def refusal(*words)
    one = launched(*words).run_to_end
    assert_equal 1, one.status.exitstatus, one.stderr
    one.stderr.delete_prefix("#{E2E::COMMAND}: ")
  end

  def test_a_word_with_arguments_mounts_a_folder
    config(%(static "/assets", "public/assets", cache: "public, max-age=60", header: { "X-A" => "b&c%" }, nosniff: false\nstatic "public"\n),
           %(static '/assets', 'public/assets', cache => 'public, max-age=60', header => { 'X-A' => 'b&c%' }, nosniff => 0;\nstatic 'public';\n))
    one = launched.start
    answer = one.get("/assets/app.js")
    assert_equal ["one", ["public, max-age=60"], ["b&c%"], []],
                 [answer.body, *%w[cache-control x-a x-content-type-options].map { |name| answer.values(name) }]
    assert_equal ["<p>", ["nosniff"]], one.get("/index.html").then { |root| [root.body, root.values("x-content-type-options")] }
    assert_equal [404, "app"], [one.get("/assets/none.js").status, one.get("/none").body]
    one.signal(:HUP)
    wait_until("a reload: #{one.stderr}") { one.stderr.include?("generation 2") }
    assert_equal "one", one.get("/assets/app.js").body
    assert_equal 0, one.stop.exitstatus
  end

  def test_what_is_printed_is_read_again
    lines = ["/assets=public/assets?cache=it's \"$5\" %26 \#{x} @y \\ 10%25&symlinks=/a&symlinks=/b&html=on", "public", "/x=y?header=A:b"]
    words = printed(*lines.flat_map { |line| ["--static", line] })
    assert_equal 3, words.size
    assert_match(E2E::RUBY ? /\Astatic "\/x", "y", header: "A:b"\z/ : /\Astatic '\/x', 'y', header => 'A:b';\z/, words.last)
    config(*["#{words.join("\n")}\n"] * 2)
    assert_equal words, printed
    assert_equal ["static = "], File.unlink(File.join(@home, "config/oribi#{E2E::RUBY ? ".rb" : ".pl"}")).then { printed }
  end

  # Texts of several lines, optional arguments, and words of one.
  def test_fixed_answers_are_printed_as_words_and_read_again
    words = ["answer '/robots.txt', 200, \"User-agent: *\\nDisallow: /\\n\"", "answer '/ping', 204", "redirect '/old', '/new'",
             "redirect '/was/*', '/is/*', 308", "health '/up'"]
    config(*[words.map { |word| "#{word};\n" }.join] * 2)
    shown = launched("--print-config").run_to_end.stdout.lines.grep(/\A(answer|redirect|health) /)
    expected = E2E::RUBY ? words.map { |word| word.tr("'", '"') } : words.map { |word| "#{word};" }
    assert_equal expected, shown.map(&:chomp)
    config(*[shown.join] * 2)
    assert_equal shown, launched("--print-config").run_to_end.stdout.lines.grep(/\A(answer|redirect|health) /)
    one = launched.start
    assert_equal [200, "User-agent: *\nDisallow: /\n"], one.get("/robots.txt").then { |answer| [answer.status, answer.body] }
    assert_equal [[204, nil], [301, "/new"], [308, "/is/x?y"], [200, nil]],
                 %w[/ping /old /was/x?y /up].map { |path| one.get(path).then { |answer| [answer.status, answer["location"]] } }
    one.stop
  end

  def test_headers_and_error_pages_are_printed_as_words_and_read_again
    file("public/down.html", "down")
    words = ["header 'X-Frame-Options', 'DENY'", "error_page 500, 'public/down.html'", "error_page [404, 503], 'public/down.html'"]
    config(*[words.map { |word| "#{word};\n" }.join] * 2)
    shown = launched("--print-config").run_to_end.stdout.lines(chomp: true).grep(/\A(header|error_page) /)
    assert_equal E2E::RUBY ? words.map { |word| word.tr("'", '"') } : words.map { |word| "#{word};" }, shown.sort_by { |line| line[0] == "h" ? 0 : 1 }
    one = launched("--static", "/a=public").start
    assert_equal [404, "down", "DENY"], one.get("/a/none").then { |answer| [answer.status, answer.body, answer["x-frame-options"]] }
    assert_equal ["app", "DENY"], one.get("/").then { |answer| [answer.body, answer["x-frame-options"]] }
    one.stop
    assert_equal "error_page 404=none.html: none.html: no such file or directory\n", refusal("--error-page", "404=none.html")
  end

  def test_mistakes_in_words_of_fixed_answers
    config(*["redirect '/x';\nanswer 200, '/a';\nredirect '/a', 301, '/b';\nhealth 'up';\nhealth '/a', '/b';\nanswer '/c', 200, 'd', 'e';\n"] * 2)
    assert_equal ["redirect needs TO: redirect FROM, TO[, STATUS]", 'answer: PATH must begin with a slash, not "200"',
                  'redirect: STATUS must be a number, not "/b"', 'health "up" needs a path that begins with a slash',
                  "health takes at most 1 argument, not 2: health PATH", "answer takes at most 3 arguments, not 4: answer PATH, STATUS[, TEXT]"],
                 refusal.lines(chomp: true).map { |line| line[/:\d+: (.*)/, 1] }
  end

  def test_all_mistakes_are_told_with_their_lines
    config(%(static "a", "b"\nstatic "/a", "b", cahce: "c"\n), %(static 'a', 'b';\nstatic '/a', 'b', cahce => 'c';\n{}\n))
    said = refusal.lines(chomp: true).map { |line| line[/:\d+: .*/] }
    assert_equal [':1: static: PREFIX must begin with a slash, not "a"', ':2: static has no setting "cahce": did you mean cache?'], said
  end

  def test_arguments_in_a_list_are_no_lines
    config(%(static ["/assets", "public/assets"]\n), %({ static => ['/assets', 'public/assets'] }\n))
    assert_match(%r{:1: static: each item of a list is a whole line, \[PREFIX=\]FOLDER, which "/assets" is not$}, refusal)
  end

  def test_a_missing_folder_is_refused
    assert_equal "static /assets=nowhere?cache=no-cache: nowhere: no such file or directory\n", refusal("--static", "/assets=nowhere?cache=no-cache")
    assert_equal "static public?symlinks=/no/where: /no/where: no such file or directory\n", refusal("--static", "public?symlinks=/no/where")
    assert_equal "static public/index.html: public/index.html: not a directory\n", refusal("--static", "public/index.html")
    assert_equal "static a=public: a=public: no such file or directory (a prefix begins with a slash)\n", refusal("--static", "a=public")
    assert_equal "static nowhere: nowhere: no such file or directory\n", refusal("--check", "--static", "nowhere")
  end

  def test_a_reload_with_a_missing_folder_fails_and_the_old_workers_serve
    config(%(static "public"\n), %(static 'public';\n))
    one = launched.start
    assert_equal "app", one.get("/").body # it is up
    config(%(static "public"\nstatic "/x", "nowhere"\n), %(static 'public';\nstatic '/x', 'nowhere';\n))
    one.signal(:HUP)
    wait_until("a failure: #{one.stderr}") { one.stderr.match?(%r{error: .*: static /x=nowhere: nowhere: no such file or directory}) }
    assert_equal "<p>", one.get("/index.html").body
    config(%(static "/y", "public"\n), %(static '/y', 'public';\n))
    one.signal(:HUP)
    wait_until("a reload") { one.get("/y/index.html").body == "<p>" }
    assert_equal 0, one.stop.exitstatus
  end

  def test_two_folders_with_one_prefix_are_told_once
    file("vendor/assets/lib.js", "lib")
    one = launched("--static", "/a=public/assets?fallthrough=on", "--static", "/a/=vendor/assets", "--static", "/b=public", "--static", "/b=vendor").start
    assert_equal ["lib", "one"], [one.get("/a/lib.js").body, one.get("/a/app.js").body]
    assert_equal ["static: /a has two folders; vendor/assets is asked for what public/assets lacks",
                  "static: /b has two folders; vendor is never asked, since public answers 404 (fallthrough)"], one.stderr.scan(/static: .*/)
    one.stop
    checked = launched("--check", "--static", "public", "--static", "vendor").run_to_end
    assert_match %r{static: / has two folders; vendor is asked for what public lacks$}, checked.stderr
    assert_equal 0, checked.status.exitstatus
  end

  if E2E::RUBY
    # No line at a reload, none of a worker, and none where there are mounts.
    def test_a_rails_applications_assets_are_suggested_once
      file("config/application.rb", "class Site < Rails::Application; end")
      FileUtils.mkdir_p(File.join(@home, "public/vite"))
      one = launched("-E", "production", "-w", "2").start
      assert_equal "app", one.get("/").body
      one.signal(:HUP)
      wait_until("a reload: #{one.stderr}") { one.stderr.include?("reload done") }
      said = one.stderr.lines(chomp: true).grep(/can be sent without/)
      words = %w[assets vite].map do |name|
        %(static "/#{name}", "public/#{name}", cache: "public, max-age=31536000, immutable" if File.directory?("public/#{name}"))
      end
      assert_equal ["this Rails application's assets can be sent without it; in config/oribi.rb: #{words.join("; ")}"], said.map { |line| line[/this .*/] }
      one.stop
      config("#{words.join("\n")}\n", "")
      [["-E", "production"], ["-E", "production", "--quiet"], ["-E", "development", "--static", "public"]].each do |flags|
        one = launched(*flags).start
        assert_equal "app", one.get("/").body
        refute_match(/can be sent without/, one.stderr)
        one.stop
      end
    end
  end

  # Capistrano's layout: a link to the release, and in it links to what all releases share.
  def test_a_new_release_behind_the_current_link_is_served_without_a_reload
    %w[1 2].each { |n| file("releases/#{n}/public/assets/app.js", "release #{n}") }
    file("shared/uploads/a.txt", "kept")
    %w[1 2].each { |n| File.symlink(File.join(@home, "shared/uploads"), File.join(@home, "releases/#{n}/public/uploads")) }
    File.symlink("releases/1", File.join(@home, "current"))
    config(%(static "current/public", symlinks: "shared"\n), %(static 'current/public', symlinks => 'shared';\n))
    one = launched.start
    assert_equal ["release 1", "kept"], %w[/assets/app.js /uploads/a.txt].map { |path| one.get(path).body }
    File.symlink("releases/2", File.join(@home, "next"))
    File.rename(File.join(@home, "next"), File.join(@home, "current"))
    wait_until("the new release") { one.get("/assets/app.js").body == "release 2" }
    assert_equal "kept", one.get("/uploads/a.txt").body
    refute_includes one.stderr, "generation 2"
    one.stop
  end
end

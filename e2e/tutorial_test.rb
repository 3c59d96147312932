# frozen_string_literal: true

require_relative "support"
require_relative "support/follower"
require_relative "support/nginx"

# The pages for the first day, followed in a fresh folder as they stand there: README.md, doc/tutorial-ruby.md,
# doc/tutorial-perl.md and doc/tutorial-websocket.md.
E2E.suite("tutorial", transports: %i[tcp]) do
  def setup
    super
    @ports = [9292, 9394, 80].to_h { |port| [port, E2E.free_port] }
    @follower = E2E::Follower.new(ports: @ports)
    pretend_to_package
  end

  # The packages themselves: e2e/packaged/first_day_test.rb.
  def pretend_to_package
    { "gem" => "oribi", "dist" => "Oribi" }.each do |kind, name|
      @follower.write("tools/package-#{kind}", "#!/bin/sh\necho #{name}\n")
      File.chmod(0o755, File.join(@follower.home, "tools/package-#{kind}"))
    end
  end

  def teardown
    @follower.end_all
    super
  end

  def get(path = "/", port: 9292) = E2E::Client.new(["127.0.0.1", @ports[port]]).get(path, { "Connection" => "close" })

  APP = E2E::RUBY ? %(run ->(_) { [200, { "content-type" => "text/plain" }, ["hello"]] }\n) : "sub { [200, ['Content-Type' => 'text/plain'], ['hello']] };\n"

  def write_app
    @follower.write(E2E::RUBY ? "config.ru" : "app.psgi", APP)
    %w[log tmp public/assets].each { |name| FileUtils.mkdir_p(File.join(@follower.home, name)) }
    @follower.write("public/assets/a.css", "p {}\n")
  end

  # Blocks of both commands, for the one at hand.
  def for_command(blocks)
    return blocks.reject { |block| block.text.match?(/oribi-psgi|cpanm|\bperl\b/) || block.file&.end_with?(".pl", ".psgi") } if E2E::RUBY

    blocks.reject { |block| block.text.match?(/^gem install|^\$ ruby /) || block.file&.end_with?(".rb", ".ru") }
          .map { |block| block.dup.tap { |one| one.text = one.text.gsub(/\boribi\b(?=[ \n])(?!-psgi)/, "oribi-psgi") } }
  end

  def readme = @readme ||= E2E::Page.new("README.md")

  def test_readme_to_a_running_server
    write_app
    installing = readme.blocks("sh", under: "Install and run").reject { |block| block.text.match?(/script\/server|apt-get/) }
    assert_equal 2, installing.size
    installing.each { |block| assert_equal 2, block.commands.size, "a server after two commands" }
    @follower.follow(for_command(installing))
    assert_equal [200, "hello"], get.then { |answer| [answer.status, answer.body] }
  end

  def test_readme_from_production_to_monitoring
    write_app
    @follower.follow(for_command(readme.blocks("sh", under: "Put it on a server").first(1)))
    assert_equal 200, get.status
    config = for_command(readme.blocks("ruby", "perl", under: "Put it on a server").select(&:file))
    assert_equal ["config/oribi.#{E2E::RUBY ? "rb" : "pl"}"], config.map(&:file)
    @follower.follow(config)
    @follower.run(E2E::Page::Command.new(text: E2E::COMMAND))
    assert_equal "p {}\n", get("/assets/a.css").body
    @follower.follow(for_command(readme.blocks("sh", under: "Put it on a server").drop(1)))
    wait_until("the status listener of the successor") { get("/ready", port: 9394).status == 200 rescue nil }
    @follower.follow(for_command(readme.blocks("sh", under: "Monitor")))
    assert_equal 9, @follower.ran.size
  end

  def test_readme_behind_nginx
    skip E2E::Nginx.missing if E2E::Nginx.missing
    write_app
    @follower.run(E2E::Page::Command.new(text: "#{E2E::COMMAND} --trusted-proxies 127.0.0.1"))
    nginx = E2E::Nginx.new(E2E::Nginx.whole(readme.blocks("nginx").first.text, @ports[80]).gsub(":9292", ":#{@ports[9292]}"))
    nginx.wait_for(@ports[80])
    assert_equal "hello", get(port: 80).body
  ensure
    nginx&.stop
  end

  # The very script, told another port and where the messages go.
  def test_readme_the_board
    words = ["--psgi"].reject { E2E::RUBY }
    @follower.write("script/server", "") # its paths are this machine's
    script = File.join(@follower.home, "script/server")
    port = "--bind 127.0.0.1:#{@ports[9292]}"
    File.write(script, "#!/bin/sh\nBOARD_DB='#{@follower.home}/board.sqlite3' exec '#{E2E::ROOT}/script/server' #{words.join(" ")} #{port}\n")
    File.chmod(0o755, script)
    @follower.follow(readme.blocks("sh", under: "Install and run").last(1))
    assert_includes get.body, "Is this thing on?"
  end

  # --- the tutorials: every block, in the page's order ---

  def test_tutorial
    skip_without "sight of what a thread waits in, which the page asks for with ctl stacks"
    skip "no ab here" unless system("command -v ab >/dev/null")
    page = E2E::Page.new(E2E::RUBY ? "doc/tutorial-ruby.md" : "doc/tutorial-perl.md")
    @follower.follow(page.blocks)
    assert_operator @follower.ran.size, :>, 30
    assert_equal 3, page.files.size
  end

  def test_tutorial_of_websockets
    skip "no oribi-frontend here: it needs libssl-dev, libnghttp2-dev and pkg-config" unless E2E.frontend?
    page = E2E::Page.new("doc/tutorial-websocket.md")
    @follower.follow(for_command(page.blocks))
    assert_equal 14, @follower.ran.size
    assert_equal 4, for_command(page.blocks).count(&:file)
  end
end

# frozen_string_literal: true

require_relative "../support"
require_relative "../support/pages"
require_relative "../../tools/userland"

# The first commands of the pages in clean Debians, in which nothing is installed: as root and in a clone, as the pages
# say. Gems and modules that are no packages of Debian are not fetched.
class FirstDayTest < Minitest::Test
  REASON = Userland.missing
  README = E2E::Page.new("README.md")
  APP = E2E::RUBY ? ["config.ru", %(run ->(_) { [200, { "content-type" => "text/plain" }, ["hello"]] }\n)] :
                    ["app.psgi", "sub { [200, ['Content-Type' => 'text/plain'], ['hello']] };\n"]
  VERSION = E2E::RUBY ? /^oribi / : /^oribi-psgi /

  def setup
    skip REASON if REASON
    @userland = Userland.new
  end

  def teardown = @userland&.remove

  # A clone of what is committed and what is not.
  def clone
    tar = "#{Userland::FOLDER}/clone.tar"
    Userland.must("sh", "-c", "git ls-files -z --cached --others --exclude-standard | tar -c --null --ignore-failed-read -T - -f #{tar}")
    @userland.take(tar, "/root/clone.tar")
    @userland.run("mkdir /root/oribi && cd /root/oribi && tar xf /root/clone.tar && rm /root/clone.tar")
  end

  # Nobody answers a question here.
  def unasked(line) = line.sub(/\Aapt-get install/, "apt-get install -y -qq --no-install-recommends").sub(/ +#.*/, "")

  # cpanm tells the reason of a failure in a file alone.
  def in_the_clone(line) = @userland.run("cd /root/oribi && #{line} || { tail -n 40 /root/.cpanm/build.log 2>/dev/null; exit 1; }")

  def installing(page, under) = page.blocks("sh", under: under).flat_map(&:commands).map(&:text)
  def mine(lines) = lines.reject { |line| line.match?(E2E::RUBY ? /oribi-psgi|cpanm|libperl/ : /for oribi$|gem install|\Aoribi$/) }

  # The server's command, asked once.
  def answer_of(server)
    file, text = APP
    @userland.write("/srv/app/#{file}", text)
    port = E2E.free_port
    @userland.run(<<~SH)
      cd /srv/app && (#{server} --bind 127.0.0.1:#{port} >/tmp/log 2>&1 & echo $! >/tmp/pid)
      until grep -q 'listening on' /tmp/log; do kill -0 $(cat /tmp/pid) || { cat /tmp/log; exit 1; }; sleep 0.05; done
      curl -sS --fail --max-time 30 http://127.0.0.1:#{port}/ && kill $(cat /tmp/pid)
    SH
  end

  def version = @userland.run("#{E2E::COMMAND} --version")

  def test_readme_from_nothing_to_an_answer
    packages, commands = mine(installing(README, "Install and run").grep_v(/script\/server/)).partition { |line| line.start_with?("apt-get") }
    assert_equal [2, 2], [packages.size, commands.size]
    packages.each { |line| @userland.run(unasked(line)) }
    clone
    install, server = commands
    @userland.run("apt-get install -y -qq --no-install-recommends ruby-rack") if E2E::RUBY # in the place of the registry
    in_the_clone(E2E::RUBY ? install.sub("gem install", "gem install --local --no-document") : install)
    assert_match(VERSION, version)
    refute_match(/no gzip|no zstd|no br|frontend: none/, version)
    assert_equal "hello", answer_of(server)
  end

  # With the packages that the compiler needs, and no more: what is left out is told, and the packages that it names
  # bring it.
  def test_what_is_left_out_and_what_brings_it
    @userland.run(unasked("apt-get install #{E2E::RUBY ? "build-essential ruby ruby-dev ruby-rack" : "build-essential libperl-dev libplack-perl cpanminus"}"))
    @userland.run(unasked("apt-get install git"))
    clone
    install = E2E::RUBY ? 'gem install --local --no-document "$(tools/package-gem)"' : 'cpanm "$(tools/package-dist)"'
    said = in_the_clone(install)
    assert_match(/frontend: none/, version)
    line = said[/\boribi: built without .*/i] or flunk(said)
    packages, again = line.match(/: apt-get install (.*) \(Debian's names\), then (.*)/).captures
    @userland.run(unasked("apt-get install #{packages}"))
    E2E::RUBY ? @userland.run(again) : in_the_clone('cpanm --reinstall "$(tools/package-dist)"')
    refute_match(/no gzip|no zstd|no br|frontend: none/, version)
    assert_equal "hello", answer_of(E2E::COMMAND)
  end

  # Both packages are built at once, so one command is enough.
  def test_building_the_debian_packages
    skip "the other command's case is this one" unless E2E::RUBY
    packages, build = installing(E2E::Page.new("doc/packages.md"), "Build")
    @userland.run(unasked(packages))
    clone
    @userland.run("git config --global init.defaultBranch main; cd /root/oribi && git init -q && git add -A")
    built = in_the_clone(build.sub(/ +#.*/, "")).lines(chomp: true).grep(/\.deb\z/)
    assert_equal 2, built.size
    @userland.run("apt-get install -y -qq --no-install-recommends #{built.join(" ")}")
    assert_equal "hello", answer_of("oribi")
  end
end

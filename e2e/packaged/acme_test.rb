# frozen_string_literal: true

require_relative "../support"
require_relative "../support/acme_authority"
require_relative "../support/namespaces"
require_relative "../support/packaged"
require_relative "../support/packaged_unit"
require_relative "../support/pages"
require_relative "../../tools/userland"
require "openssl"

# Certificates in a clean Debian, in which the package of E2E_COMMAND is installed: from the installation to a page over
# HTTPS by one line and one command, as root and as the unit; and the recipe of doc/tls.md for certbot and lego, block
# by block. The authority is pebble; it, the servers and the clients have a network of their own, in which all names
# lead to 127.0.0.1. `make packages` runs it with both commands.
class PackagedAcmeTest < Minitest::Test
  REASON = Userland.missing || AcmeAuthority.refused || E2E::Packaged.missing("dh" => "debhelper", "dpkg-buildpackage" => "dpkg-dev", "ip" => "iproute2")
  NAME = E2E::Packaged::KIND.name
  TLS = E2E::Page.new("doc/tls.md")
  RECIPE = "Certificates of certbot and lego"
  APP = E2E::RUBY ? ["config.ru", "run ->(_env) { [200, { \"content-type\" => \"text/plain\" }, [\"page\"]] }\n"] :
                    ["app.psgi", "sub { [200, ['Content-Type' => 'text/plain'], ['page']] };\n"]

  def self.test_order = :alpha

  class << self
    attr_reader :output

    # Steps that need Debian's mirror come first: in the network of the test there is none.
    def userland
      @userland ||= Userland.new.tap do |one|
        Minitest.after_run { one.remove }
        one.take(E2E::Packaged.build.fetch(NAME), "/root/taken.deb")
        @output = one.run("apt-get install -y -qq /root/taken.deb")
        one.run("apt-get install -y -qq --no-install-recommends certbot lego") if E2E::RUBY
        one.write("/srv/site/#{APP[0]}", APP[1])
        one.write("/etc/hosts", "127.0.0.1 localhost example.org www.example.org\n")
      end
    end

    def authority
      @authority ||= begin
        dir = Dir.mktmpdir("oribi-authority")
        AcmeAuthority.new(dir, http_port: 80).start.tap do |one|
          Minitest.after_run { one.stop && FileUtils.remove_entry(dir) }
          userland.take("#{dir}/authority.pem", "/usr/local/share/ca-certificates/authority.crt")
          userland.run("update-ca-certificates")
          userland.write("/root/issuer.pem", one.root)
        end
      end
    end
  end

  def setup
    skip REASON if REASON
    userland
    skip E2E::Namespaces.refused if E2E::Namespaces.refused
    authority
  end

  def teardown
    @unit&.stop
    @server&.cleanup
  end

  def userland = self.class.userland
  def authority = self.class.authority
  def run!(line) = userland.run(line)
  def unit = @unit ||= E2E::PackagedUnit.new(userland, NAME, "site")
  def log = @unit ? @unit.log : @server.stderr

  # Asks as a browser would that trusts the authority.
  PAGE = "curl -sS --fail --max-time 30 --cacert /root/issuer.pem https://example.org/"

  def the_page_comes
    E2E.wait_until("the page over HTTPS; #{log}") { userland.try(PAGE) == ["page", 0] }
  rescue E2E::Timeout => e
    raise e.class, "#{e.message}: #{log} #{userland.try(PAGE)}"
  end

  def serial
    tls = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", 443)).tap { |one| one.hostname = "example.org" }.tap(&:connect)
    tls.peer_cert.serial
  ensure
    tls&.close
  end

  def owners(*paths) = paths.map { |path| run!("stat -c '%U %a' #{path}").chomp }

  def test_1_installation
    assert_match(/\Ainstalled/, run!("dpkg-query -W -f '${db:Status-Status}' uacme"), "recommended")
    assert_match(%r{:/nonexistent:/usr/sbin/nologin$}, run!("getent passwd oribi-acme"))
    assert_equal "oribi-acme", run!("id -Gn oribi-acme").chomp
    refute_match(/warning|error/i, self.class.output)
  end

  # The page's one line, with the test's authority.
  def test_2_one_command_as_root
    line = TLS.blocks("sh").find { |block| block.text.start_with?("oribi --acme") }.commands.fetch(0).text.sub(/\Aoribi/, NAME)
    @server = E2E::Server.new(argv: ["chroot", userland.dir, "sh", "-c", "cd /srv/site && exec #{line} --acme-directory #{authority.directory}"],
                              env: { "PATH" => Userland::ENVIRONMENT["PATH"] }, group: true).launch
    the_page_comes
    assert_match %r{^location: https://example.org/x\r?$}i, run!("curl -sS -i --max-time 30 http://example.org/x")
    assert_match(/^example\.org +good /, run!("cd /srv/site && #{NAME} ctl certificates"))
    folder = "/var/lib/oribi/acme"
    assert_equal ["root 755", "root 600", "root 600", "oribi-acme 700", "oribi-acme 700"],
                 owners(folder, "#{folder}/example.org.pem", "#{folder}/example.org.state", "#{folder}/account", "#{folder}/request")
    assert_equal ["oribi-acme"], run!("find #{folder}/account -printf '%u\n'").lines(chomp: true).uniq
    @server.signal(:TERM)
    assert_equal 0, @server.wait.exitstatus, @server.stderr
  end

  def configure(text)
    userland.write("/#{E2E::Packaged::KIND.config("site")}", text)
  end

  # The page's lines in the file of a unit, whose user has one right more than others: ports below 1024.
  def test_3_the_unit
    block = TLS.blocks(E2E::RUBY ? "ruby" : "perl").find { |one| one.text.include?("acme_terms") }.text
    quoted = E2E::RUBY ? %(chdir "/srv/site"\nacme_directory "#{authority.directory}"\n) : "chdir '/srv/site';\nacme_directory '#{authority.directory}';\n"
    configure(block + quoted)
    assert_match(/ 0 wrong, 0 risks$/, run!("#{NAME} check @site"), "before the first start")
    unit.start
    the_page_comes
    folder = "/var/lib/#{NAME}/site/acme"
    assert_equal ["oribi 755", "oribi 600", "oribi 700"], owners(folder, "#{folder}/example.org.pem", "#{folder}/account")
    assert_match(/^example\.org +good /, run!("#{NAME} ctl @site certificates"))
    before = [unit.pid, serial]
    unit.forget_notifications
    run!("#{NAME} ctl @site upgrade")
    unit.hear("READY=1")
    refute_equal before[0], unit.pid
    the_page_comes
    assert_equal before[1], serial, "it was not asked for again"
  end

  # --- certificates of others ---

  def recipe(*languages) = TLS.blocks(*languages, under: RECIPE)

  # Commands of a block; systemd's part is played.
  def follow(block)
    block.commands.map(&:text).each { |line| line == "systemctl restart oribi@site" ? unit.restart : run!(line) }
  end

  def site_files = recipe("ruby").select { |block| block.file == "/etc/oribi/site.rb" }
  def sh_with(words) = recipe("sh").find { |block| block.text.include?(words) } || flunk("no block has #{words}")

  # All steps, the third by this block; then a renewal.
  def follow_recipe(first, renewal)
    skip "the files of this recipe are Ruby's" unless E2E::RUBY
    assert_equal 2, site_files.size
    userland.run("rm -rf /etc/oribi/tls /var/lib/oribi/site")
    run!("install -d -o oribi -g oribi /var/lib/oribi/site")
    configure(site_files[0].text)
    follow(sh_with("install -d"))
    userland.write("/usr/local/sbin/oribi-certificate", sh_with("#!/bin/sh").text)
    run!("chmod 755 /usr/local/sbin/oribi-certificate")
    follow(sh_with(first))
    assert_equal ["root 750", "root 640"], owners("/etc/oribi/tls", "/etc/oribi/tls/site.pem")
    configure(site_files[1].text)
    follow(sh_with("oribi check @site"))
    the_page_comes
    before = serial
    run!(renewal)
    refute_equal before, serial, "the hook's"
    the_page_comes
  end

  # Answers to all that certbot asks its user are in its file.
  def test_4_certbot
    userland.write("/etc/letsencrypt/cli.ini", "server = #{authority.directory}\nemail = me@example.org\nagree-tos = true\nnon-interactive = true\n")
    follow_recipe("certbot certonly", "certbot renew --force-renewal --no-random-sleep-on-renew")
  end

  # Answers to all that lego asks its user are options, before the words of the page.
  def test_5_lego
    userland.write("/usr/local/bin/lego", "#!/bin/sh\nexec /usr/bin/lego --server #{authority.directory} --accept-tos \"$@\"\n")
    run!("chmod 755 /usr/local/bin/lego")
    renewal = E2E::RUBY && sh_with("lego --path").commands.fetch(0).text.sub("run --run-hook", "renew --days 36500 --no-random-sleep --renew-hook")
    follow_recipe("lego --path", renewal)
  end

  # The certificates of servers that were started as root are there until both packages have gone.
  def test_6_purge
    other = E2E::RUBY ? "oribi-psgi" : "oribi"
    userland.write("/root/other/DEBIAN/control", "Package: #{other}\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: x\n")
    run!("mkdir -p /var/lib/oribi/acme && dpkg-deb -b /root/other /root/other.deb && dpkg -i /root/other.deb")
    run!("apt-get purge -y -qq #{NAME}")
    assert_equal ["acme"], Dir.children(userland.path("/var/lib/oribi"))
    refute File.exist?(userland.path("/var/lib/oribi-psgi"))
    run!("dpkg --purge #{other} && dpkg -i /root/taken.deb")
    run!("apt-get purge -y -qq #{NAME}")
    refute File.exist?(userland.path("/var/lib/oribi"))
    run!("getent passwd oribi-acme")
  end
end

# frozen_string_literal: true

# The rows of tools/matrix: a place where the tests are run (this machine, or another Debian), and what is put into it
# for the row (gems, a Perl). Reading order: Here, Debian, Gems, UnthreadedPerl, Row.
require "fileutils"
require "shellwords"
require_relative "matrix_parts"
require_relative "userland"

def must(*argv, **options) = system(*argv, out: $stderr, **options) || raise("could not #{argv.grep(String).first(4).join(" ")}")

# This machine as it is.
class Here
  def path = ENV.fetch("PATH")
  def folder(name) = File.join(ROOT, "build/matrix", name)
  def outside(folder) = folder
  def prepare = nil
  def leave = nil
  def command(env, argv) = [env, argv, { chdir: ROOT }]
  def run(env, *argv) = must(env, *argv)
end

# A userland of its own, kept below the folder of --roots.
class Debian
  # Beside what a minimal Debian has. One list for all of them: where a name is missing, the row says so.
  PACKAGES = %w[build-essential ca-certificates curl git pkg-config procps strace ruby ruby-dev ruby-rack ruby-minitest ruby-websocket-driver
                perl libperl-dev libplack-perl libwww-perl libtest-tcp-perl libserver-starter-perl libmojolicious-perl libdancer2-perl
                libprotocol-websocket-perl libtext-xslate-perl libtemplate-perl libio-socket-ssl-perl libplack-middleware-session-perl
                zlib1g-dev libzstd-dev libbrotli-dev libssl-dev libnghttp2-dev nghttp2-client openssl redis-server].freeze
  # Programs over the Redis client's driver are tested with them.
  GEMS = %w[redis-client:~>0.22 redis:~>5.0].freeze
  ENVIRONMENT = { "HOME" => "/root", "LANG" => "C.UTF-8", "DEBIAN_FRONTEND" => "noninteractive",
                  "PATH" => "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }.freeze

  # checkout: where in it the sources lie; what another Perl has built must not lie there.
  def initialize(suite, options, more: [], checkout: "/root/oribi")
    @suite = suite
    @packages = PACKAGES + more
    @checkout = checkout
    @options = options
    @dir = File.join(options[:roots], suite)
  end

  def path = ENVIRONMENT["PATH"]
  def folder(name) = File.join("/root", name)
  def outside(folder) = File.join(@dir, folder)
  def command(env, argv) = [ENVIRONMENT.merge(env), ["chroot", @dir, "sh", "-c", "cd #{@checkout} && exec #{argv.shelljoin}"], { unsetenv_others: true }]

  def run(env, *argv)
    env, argv, options = command(env, argv)
    must(env, *argv, **options)
  end

  def prepare
    raise "needs root and debootstrap" unless Process.uid.zero? && system("command -v debootstrap >/dev/null")

    FileUtils.mkdir_p(@options[:roots])
    unless File.exist?("#{@dir}/usr/bin/apt-get")
      must("debootstrap", "--variant=minbase", "--include=ca-certificates", @suite, @dir, @options[:mirror])
    end
    mount
    install unless made == wanted
    copy_sources
  end

  def leave = %w[dev proc].each { |name| system("umount", "-R", "-l", "#{@dir}/#{name}", err: File::NULL) }

  private

  # What is in it, by name: a list that has grown is installed into the one of earlier.
  def wanted = [*@packages, *GEMS].join(" ")
  def made = File.exist?("#{@dir}/root/made") ? File.read("#{@dir}/root/made") : ""

  def install
    Userland.borrow(@dir)
    FileUtils.mkdir_p(outside(@checkout))
    run({}, "sh", "-c", "apt-get update -qq && apt-get install -y -qq --no-install-recommends #{@packages.shelljoin}")
    run({}, "gem", "install", "--no-document", "--conservative", *GEMS)
    File.write("#{@dir}/root/made", wanted)
  end

  def mount
    return if File.exist?("#{@dir}/proc/self")

    must("mount", "-t", "proc", "proc", "#{@dir}/proc")
    must("mount", "--rbind", "/dev", "#{@dir}/dev")
    must("mount", "--make-rslave", "#{@dir}/dev")
  end

  # What git knows, as it lies here; objects of the run before stay, so that only what has changed is built. A source
  # that is no longer here must not be built there.
  def copy_sources
    target = outside(@checkout)
    FileUtils.mkdir_p(target)
    FileUtils.rm_f(Dir["#{target}/{core,redis/core}/{src,include,test}/**/*.[ch]"])
    must("sh", "-c", "cd #{ROOT.shellescape} && git ls-files -z | tar -c --null -T - | tar -x -C #{target.shellescape}")
  end
end

# Gems of a row's own, in a folder that stands in the place of all others.
class Gems
  # name: of the folder. gems: as `gem install` takes them; those of alone come without what they ask for.
  def initialize(name, alone: [], gems: [])
    @name = name
    @alone = alone
    @gems = gems
  end

  def environment(place)
    dir = place.folder(@name)
    { "GEM_HOME" => dir, "GEM_PATH" => dir, "PATH" => "#{dir}/bin:#{place.path}" }
  end

  def prepare(place)
    made = place.outside("#{place.folder(@name)}/made")
    list = [*@alone, *@gems].join(" ")
    return if File.exist?(made) && File.read(made) == list

    install(place, "--ignore-dependencies", *@alone) if @alone.any?
    install(place, *@gems)
    File.write(made, list)
  end

  private

  def install(place, *words)
    place.run(environment(place), "gem", "install", "--no-document", "--conservative", "--install-dir", place.folder(@name), *words)
  end
end

# A Perl compiled without threads from the sources of the Debian that it stands in, without Debian's patches (not every
# mirror has what lists them). Modules in plain Perl are that Debian's; those with C are not there.
class UnthreadedPerl
  FOLDER = "/opt/perl-unthreaded"
  BUILD = <<~SH
    set -e
    sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
    apt-get update -qq
    work=$(mktemp -d)
    cd "$work"
    chmod 755 .
    apt-get source -qq --tar-only perl
    mkdir perl
    tar -xf perl_*.orig.tar.xz -C perl --strip-components=1
    cd perl
    ./Configure -des -Dprefix=#{FOLDER} -Uusethreads -Dman1dir=none -Dman3dir=none >/dev/null
    nice -n 19 make -j2 >/dev/null
    make install >/dev/null
    rm -rf "$work"
  SH

  def environment(place) = { "PATH" => "#{FOLDER}/bin:#{place.path}", "PERL5LIB" => "/usr/share/perl5" }

  def prepare(place)
    place.run({}, "sh", "-c", BUILD) unless File.exist?(place.outside("#{FOLDER}/bin/perl"))
  end
end

# One line of the table.
class Row
  attr_reader :name, :parts, :versions

  # place, addition: as above. versions: of Versions::ASKED, those that are the row's.
  def initialize(name, place, parts, options, addition: nil, versions: %w[Ruby rack])
    @name = name
    @place = place
    @parts = parts & options[:parts]
    @addition = addition
    @versions = versions
  end

  # [versions, {part => [passed, failed, skipped]}, lines told]
  def run
    warn "tools/matrix: #{name}"
    @place.prepare
    @addition&.prepare(@place)
    found = ["", {}, []]
    IO.popen(*command) { |output| output.each_line(chomp: true) { |line| note(line, found) } }
    found
  rescue RuntimeError => e
    ["", {}, ["not run: #{e.message}"]]
  ensure
    @place.leave
  end

  private

  def command
    @place.command(@addition ? @addition.environment(@place) : {},
                   ["ruby", "tools/matrix", "--here", @parts.join(","), "--versions", versions.join(",")])
  end

  def note(line, found)
    warn "  #{line.tr("\t", " ")}"
    kind, *rest = line.split("\t")
    case kind
    when "versions" then found[0] = rest[0]
    when "part" then found[1][rest[0]] = rest.drop(1).map(&:to_i)
    when "told" then found[2] << rest[0]
    end
  end
end

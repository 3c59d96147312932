# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# Clean Debians for tests: a base made by debootstrap, kept below build/userland, and userlands, each a layer of its own
# over it, so that a fresh one is there at once. What is mounted would outlive a killed test, so the program that makes
# userlands runs in namespaces of its own (Userland.confine); with it go its mounts and all its processes.
class Userland
  ROOT = File.expand_path("..", __dir__)
  FOLDER = File.join(ROOT, "build/userland")
  # Downloaded into the base, not installed: what tests install is there without the network.
  DOWNLOADED = %w[adduser logrotate ruby ruby-rack ruby-dev perl libplack-perl libperl-dev build-essential zlib1g-dev libzstd-dev libbrotli-dev
                  libssl-dev libnghttp2-dev pkg-config cpanminus git debhelper nginx-light uacme pebble certbot lego].freeze
  ENVIRONMENT = { "HOME" => "/root", "LANG" => "C.UTF-8", "DEBIAN_FRONTEND" => "noninteractive",
                  "PATH" => "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" }.freeze
  PROGRAMS = { "debootstrap" => "debootstrap", "unshare" => "util-linux", "mount" => "mount" }.freeze

  class << self
    # Why there can be none here, in words; nil when there can.
    def missing
      return "userlands need root" unless Process.uid.zero?
      return "the sources of this machine's apt name no Debian mirror" unless mirror

      absent = PROGRAMS.keys.reject { |program| ENV.fetch("PATH").split(":").any? { |dir| File.executable?("#{dir}/#{program}") } }
      return "missing: #{absent.join(", ")} (apt-get install #{PROGRAMS.values_at(*absent).join(" ")})" if absent.any?

      "namespaces and mounts are refused here" unless system("unshare", "--mount", "--pid", "--fork", "--mount-proc", "true", err: File::NULL)
    end

    # Runs this program again where its mounts and processes end with it. A shell is the first process there: it reaps.
    def confine(program, argv)
      return if ENV["ORIBI_USERLAND"] == "confined"

      FileUtils.rm_rf(Dir["#{FOLDER}/run-*"]) # of killed runs; nothing is mounted in them out here
      exec({ "ORIBI_USERLAND" => "confined" }, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
           "sh", "-c", 'ruby "$@"; exit $?', "sh", program, *argv)
    end

    # Of this machine.
    def mirror
      apt_sources.map { |file| File.read(file) }.join("\n")[%r{^(?:deb(?:\s+\[[^\]]*\])?\s+|URIs:\s*)(\S+/debian)/?\s*(?:\s|$)}, 1]
    end

    def apt_sources = Dir["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.{list,sources}"].select { |file| File.file?(file) }

    # How this machine finds the network is how the userland does.
    def borrow(dir)
      %w[/etc/resolv.conf /etc/hosts].each { |file| FileUtils.cp(file, "#{dir}#{file}") if File.exist?(file) }
      %w[/etc/apt/apt.conf.d /etc/ssl/certs /usr/local/share/ca-certificates].each do |folder|
        system("cp", "-a", "#{folder}/.", "#{dir}#{folder}/", err: File::NULL) if Dir.exist?(folder)
      end
    end

    def suite = File.read("/etc/os-release")[/^VERSION_CODENAME=(\S+)/, 1]

    # Updates and security come from where this machine has them: what is built here may ask for them.
    def borrow_sources(dir)
      ours = apt_sources.select do |file|
        addresses = File.read(file).scan(%r{^(?:deb(?:\s+\[[^\]]*\])?\s+|URIs:\s*)(\S+)}).flatten
        addresses.any? && addresses.all? { |address| address.match?(%r{/debian(-security)?/?\z}) }
      end
      FileUtils.rm_f("#{dir}/etc/apt/sources.list")
      ours.each { |file| FileUtils.cp(file, "#{dir}#{file}") }
    end

    # The folder with the base; until it is whole its name says so.
    def base
      folder = "#{FOLDER}/#{suite}"
      return folder if File.exist?("#{folder}/root/made")

      FileUtils.rm_rf("#{folder}.new")
      FileUtils.mkdir_p(FOLDER)
      warn "userland: debootstrap #{suite}, once"
      must("debootstrap", "--variant=minbase", "--include=ca-certificates,curl", suite, "#{folder}.new", mirror)
      borrow("#{folder}.new")
      borrow_sources("#{folder}.new")
      FileUtils.rm_f("#{folder}.new/etc/apt/apt.conf.d/docker-clean") # it throws downloaded packages away
      must(ENVIRONMENT, "chroot", "#{folder}.new", "sh", "-c",
           "apt-get update -qq && apt-get install --download-only -y -qq --no-install-recommends #{DOWNLOADED.join(" ")}", unsetenv_others: true)
      FileUtils.touch("#{folder}.new/root/made")
      FileUtils.rm_rf(folder)
      File.rename("#{folder}.new", folder)
      folder
    end

    def must(*argv, **options)
      output = IO.popen(*(argv.first.is_a?(Hash) ? [argv.shift] : []), argv, err: %i[child out], **options, &:read)
      raise "#{argv.first(4).join(" ")}: #{output.lines.last(20).join}" unless $?.success?

      output
    end
  end

  attr_reader :dir

  def initialize
    raise "Userland.confine comes first" unless ENV["ORIBI_USERLAND"] == "confined"

    lower = Userland.base
    @run = Dir.mktmpdir("run-", FOLDER)
    upper, work, @dir = %w[upper work root].map { |name| File.join(@run, name).tap { |path| Dir.mkdir(path) } }
    File.chmod(0o755, upper, @run)
    Userland.must("mount", "-t", "overlay", "overlay", "-o", "lowerdir=#{lower},upperdir=#{upper},workdir=#{work}", @dir)
    Userland.must("mount", "-t", "proc", "proc", "#{@dir}/proc")
    Userland.must("mount", "--rbind", "/dev", "#{@dir}/dev")
  end

  def path(inside) = File.join(@dir, inside)

  def write(inside, text)
    FileUtils.mkdir_p(File.dirname(path(inside)))
    File.write(path(inside), text)
  end

  # Copies a file or a folder into it.
  def take(from, inside)
    FileUtils.mkdir_p(File.dirname(path(inside)))
    FileUtils.cp_r(from, path(inside))
  end

  # A shell's line in it: [output, exit code].
  def try(line)
    output = IO.popen(ENVIRONMENT, ["chroot", @dir, "sh", "-c", line], err: %i[child out], unsetenv_others: true, &:read)
    [output.gsub(/.*\r(?!\n)/, "").delete("\r"), $?.exitstatus] # apt shows its progress
  end

  # The same, which must succeed; its output.
  def run(line)
    output, code = try(line)
    raise "in the userland: #{line}: exit code #{code}: #{output}" unless code == 0

    output
  end

  # Processes whose root it is.
  def processes
    Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select do |pid|
      File.readlink("/proc/#{pid}/root") == @dir
    rescue SystemCallError
      false
    end
  end

  def remove
    processes.each { |pid| Process.kill(:KILL, pid) }
    Userland.must("umount", "--recursive", "--lazy", @dir) if File.exist?("#{@dir}/proc/self")
    FileUtils.rm_rf(@run) if Dir.empty?(@dir)
  end
end

# frozen_string_literal: true

require_relative "../support"
require "open3"
require "rubygems/package"

# The gems as users install them: into an empty folder, by RubyGems as it is; the precompiled ones with nothing in PATH
# that could compile. Each then serves a request. That of aarch64 runs under qemu's user emulation, with Debian's Ruby
# for that processor. It takes a minute or two: make gems.
class GemsTest < Minitest::Test
  FOLDER = File.join(E2E::ROOT, "build/gems")
  ARM = File.join(E2E::ROOT, "build/gems/arm64")
  QEMU = "qemu-aarch64-static"
  MINOR = RUBY_VERSION[/\A\d+\.\d+/]
  APP = "run ->(env) { [200, { 'content-type' => 'text/plain' }, [RUBY_PLATFORM, ' ', env['PATH_INFO']]] }\n"

  def setup
    @dir = Dir.mktmpdir("oribi-gems")
    FileUtils.mkdir_p([FOLDER, *%w[home bin app].map { |name| "#{@dir}/#{name}" }])
    File.write("#{@dir}/app/config.ru", APP)
  end

  def teardown = FileUtils.remove_entry(@dir)

  def run!(*words, env: {}, dir: @dir, **options)
    output, status = Open3.capture2e(env, *words, chdir: dir, **options)
    assert status.success?, "#{words.join(" ")}:\n#{output}"
    output
  end

  # A gem of `platform`, built once for all cases.
  def self.built(platform)
    @built ||= {}
    @built[platform] ||= begin
      output, status = Open3.capture2e("rake", platform ? "gem:#{platform}" : "gem", chdir: E2E::ROOT)
      raise "not built: #{output}" unless status.success?

      puts output.lines.grep(/Ruby \d/)
      output.lines.last.chomp
    end
  end

  # The one gem that ours needs, as RubyGems keeps it.
  def rack = Gem::Specification.find_by_name("rack", ">= 3").cache_file

  # Installs as a user without a compiler would: PATH has Ruby and what its commands begin with, and nothing else.
  def install(gem, path: bare_path)
    env = { "GEM_HOME" => "#{@dir}/home", "GEM_PATH" => "#{@dir}/home", "PATH" => path, "HOME" => @dir, "LC_ALL" => "C.UTF-8" }
    started = [Process.clock_gettime(Process::CLOCK_MONOTONIC), Process.times]
    [rack, gem].each { |file| run!("gem", "install", "--local", "--no-document", file, env: env, unsetenv_others: true) }
    tell(gem, *started)
    env
  end

  def tell(gem, at, before)
    times = Process.times
    puts format("%<name>s: installed in %<wall>.1f s, %<user>.1f s user, %<system>.1f s system", name: File.basename(gem),
                wall: Process.clock_gettime(Process::CLOCK_MONOTONIC) - at, user: times.cutime - before.cutime, system: times.cstime - before.cstime)
  end

  def bare_path
    %w[ruby gem env].each { |name| FileUtils.ln_sf(run!("which", name).chomp, "#{@dir}/bin/#{name}") }
    "#{@dir}/bin"
  end

  # What a server of that gem answers. Its group is killed at last: under the emulator workers are no children of their
  # supervisor, which waits for them.
  def answer(env, *command)
    port = E2E.free_port
    pid = Process.spawn(env, *command, "--bind", "127.0.0.1:#{port}", "--workers", "1", "config.ru",
                        chdir: "#{@dir}/app", out: "#{@dir}/log", err: "#{@dir}/log", unsetenv_others: true, pgroup: true)
    body = nil
    E2E.wait_until("an answer") do
      flunk File.read("#{@dir}/log") if Process.wait(pid, Process::WNOHANG)
      body = Socket.tcp("127.0.0.1", port) { |socket| socket.write("GET /from HTTP/1.0\r\n\r\n") && socket.read }
    rescue SystemCallError
      nil
    end
    body
  rescue E2E::Timeout
    flunk File.read("#{@dir}/log")
  ensure
    Process.kill(:KILL, -pid) && Process.wait(pid)
  end

  def assert_no_compiler_needed(file)
    names = Gem::Package.new(file).contents
    assert_includes names, "lib/oribi/#{MINOR}/oribi.so"
    assert_empty names.grep(%r{\Aext/|\.[cho]\z})
    assert_includes names, "licenses/libzstd" if names.any? { |name| name.start_with?("licenses/") }
    assert_operator File.size(file), :<, 2 << 20
    Gem::Package.new(file).extract_files("#{@dir}/inside")
    refute_match(%r{/oribi-platform|#{Regexp.escape(E2E::ROOT)}/}, File.binread("#{@dir}/inside/lib/oribi/#{MINOR}/oribi.so"))
  end

  # Which glibc the documents promise.
  def assert_glibc(library)
    promised = File.read(File.join(E2E::ROOT, "doc/compatibility.md"))[/precompiled gems need glibc (\d\.\d+)/, 1]
    wanted = run!("readelf", "-W", "--version-info", library).scan(/GLIBC_(\d+\.\d+)/).flatten.map { |version| Gem::Version.new(version) }.max
    assert_equal Gem::Version.new(promised), wanted
  end

  # Registers of AVX appear in functions that are chosen at run time alone.
  def assert_baseline(library)
    name = nil
    using = run!("objdump", "-d", "--no-show-raw-insn", library).lines.filter_map do |line|
      name = line[/<(.*)>:/, 1] || name
      name if line.match?(/%[yz]mm/)
    end
    refute_empty using
    assert_empty using.uniq.grep_v(/avx2|avx512/)
  end

  def test_compiled_where_it_is_installed
    env = install(self.class.built(nil), path: ENV.fetch("PATH"))
    assert_match(/200 OK.*-linux.* \/from/m, answer(env, "#{@dir}/home/bin/oribi"))
    assert_includes run!("#{@dir}/home/bin/oribi", "--help", env: env), "man -l #{@dir}/home/gems/"
  end

  def test_precompiled_for_this_processor
    cpu = RbConfig::CONFIG["host_cpu"]
    file = self.class.built("#{cpu}-linux")
    assert_no_compiler_needed(file)
    env = install(file)
    assert_match(/200 OK.*#{cpu}-linux.* \/from/m, answer(env, "#{@dir}/home/bin/oribi"))
    library = Dir["#{@dir}/home/gems/oribi-*/lib/oribi/#{MINOR}/oribi.so"].first
    assert_glibc(library)
    assert_baseline(library) if cpu == "x86_64"
    refute_match(/libruby|zstd|brotli/, run!("readelf", "-d", library))
  end

  # Ruby for the other processor, which runs itself by the emulator as often as it starts a process.
  def arm_ruby
    archives = "#{ARM}/archives"
    FileUtils.mkdir_p(["#{ARM}/root", "#{archives}/partial", "#{ARM}/state/lists/partial"])
    settings = ["Dir::State=#{ARM}/state", "Dir::State::status=/dev/null", "Dir::Cache=#{ARM}", "APT::Architecture=arm64", "APT::Architectures=arm64",
                "Acquire::Languages=none", "APT::Sandbox::User=root"].flat_map { |setting| ["-o", setting] }
    run!("apt-get", "-q", *settings, "update")
    run!("apt-get", "-qy", *settings, "--no-install-recommends", "--download-only", "install", "ruby#{MINOR}")
    Dir["#{archives}/*.deb"].each { |deb| run!("dpkg-deb", "-x", deb, "#{ARM}/root") }
    "#{ARM}/root/usr/bin/ruby#{MINOR}"
  end

  def missing
    return "no #{QEMU}" unless system("which", QEMU, out: File::NULL)
    return "no aarch64-linux-gnu-gcc" unless system("which", "aarch64-linux-gnu-gcc", out: File::NULL)

    "no apt" unless system("which", "apt-get", out: File::NULL)
  end

  def test_precompiled_for_aarch64
    skip missing if missing
    file = self.class.built("aarch64-linux")
    assert_no_compiler_needed(file)
    [rack, file].each { |package| Gem::Package.new(package).extract_files("#{@dir}/home") }
    assert_glibc("#{@dir}/home/lib/oribi/#{MINOR}/oribi.so")
    env = { "PATH" => ENV.fetch("PATH"), "QEMU_LD_PREFIX" => "#{ARM}/root", "GEM_HOME" => "#{@dir}/none", "GEM_PATH" => "#{@dir}/none", "RUBYOPT" => "-W0" }
    ruby = [QEMU, arm_ruby, "-I#{@dir}/home/lib"]
    assert_equal "aarch64-linux-gnu gzip", run!(*ruby, "-e", 'require "oribi"; print RUBY_PLATFORM, " ", Oribi::Core.codings[/gzip/]', env: env)
    assert_match(%r{200 OK.*aarch64-linux-gnu /from}m, answer(env, *ruby, "#{@dir}/home/exe/oribi"))
  end
end

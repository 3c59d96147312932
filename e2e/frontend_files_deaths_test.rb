# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Deaths of workers and frontends, and reloads, while clients get files, strings and streams over TLS, by HTTP/1.1 and
# HTTP/2, and some of them leave. What comes is right to its last byte, or the client sees that its end is missing;
# nobody waits for ever; and no process keeps a descriptor.
#
#   DEATHS=4   in each case       script/test --all: 8, ORIBI_SOAK: 500
E2E.suite("frontend_files_deaths", transports: %i[tcp]) do
  include FrontendServers

  APP = "e2e/apps/sendfile#{E2E.differing(:app_extension)}"

  WORKERS = 3
  FRONTENDS = 2
  DEATHS = Integer(ENV.fetch("DEATHS", ENV.key?("ORIBI_SOAK") ? "500" : E2E::MORE_ROUNDS ? "8" : "4"))
  WAIT_S = 60
  # About what goes by the ring (16 KiB), what is copied there (128 KiB), the first piece of a file, and more than that.
  SIZES = [1, 16_384, 16_385, 40_000, 131_073, 300_000, 1 << 20, 5_000_001].freeze
  WAYS = %w[to_path handle string stream].freeze
  REQUESTS = 8 # in a round of a client
  BLOCK = Random.new(7).bytes(SIZES.max).freeze
  # By HTTP/1.1 all requests of a round at once. By HTTP/2 one by one: with several streams curl 7.88 overlooks that one
  # was reset.
  CLIENTS = [%w[--http1.1 -Z], %w[--http2], %w[--http2]].freeze
  # curl: no connection, an answer that is cut, no handshake, no answer, a reset, and HTTP/2's words for them.
  CUT = [7, 16, 18, 35, 52, 55, 56, 92].freeze
  LEFT = 28

  Wrong = Class.new(StandardError)

  def setup
    super
    FileUtils.mkdir_p("#{@dir}/files")
    SIZES.each { |size| File.binwrite("#{@dir}/files/f#{size}", content(size)) }
    @lock = Mutex.new
    @counts = Hash.new(0)
    @over = false
  end

  def content(size) = BLOCK.byteslice(0, size)

  def launch(*options)
    serve("--workers", WORKERS.to_s, "--frontends", FRONTENDS.to_s, *options, app: APP, env: { "E2E_FILES" => "#{@dir}/files" })
    wait_until("all processes: #{@one.stderr}") { worker_pids.size == WORKERS && frontend_pids.size == FRONTENDS }
    @first = wait_until("processes at rest") { open_now&.then { |one| one if one[:workers].uniq.size == 1 } }
  end

  # --- clients ---

  # A round of a client: several requests, of all kinds.
  def round(flags, random, folder, leaves)
    wanted = Array.new(REQUESTS) { |i| [WAYS.sample(random: random), SIZES.sample(random: random), "#{folder}/#{i}"] }
    wanted.each { |_, _, out| File.write(out, "") }
    words = wanted.flat_map { |way, size, out| ["-o", out, "https://localhost:#{@one.port}/#{way}?f#{size}"] }
    words.unshift("--limit-rate", "20M") if random.rand(4).zero?
    said, error, = Open3.capture3(FrontendServers::PLAIN, "curl", "-sS", *flags, "--cacert", "#{@dir}/site.pem",
                                  "--max-time", leaves ? (random.rand * 0.3).to_s : (WAIT_S * E2E.patience).to_i.to_s,
                                  "-w", "%{exitcode} %{http_code} %{filename_effective}\\n", *words)
    ends = said.lines.to_h { |line| line.split.then { |code, status, out| [out, [code.to_i, status.to_i]] } }
    wanted.each { |way, size, out| check(way, size, File.binread(out), *ends.fetch(out, [nil, nil]), leaves, error) }
  end

  def check(way, size, bytes, code, status, leaves, error)
    said = "#{way} of #{size} bytes: curl #{code}, status #{status}, #{bytes.bytesize} bytes: #{error.lines.first(2).join}"
    raise Wrong, said unless code&.zero? || CUT.include?(code) || (leaves && [nil, LEFT].include?(code))
    raise Wrong, said unless [0, nil, 200, 502].include?(status)

    note([way, code&.zero? ? status : leaves ? :left : :cut])
    return if status == 502

    whole = code&.zero? ? size : bytes.bytesize
    raise Wrong, "another content: #{said}" unless bytes.bytesize == whole && bytes == content(whole)
  end

  def note(what) = @lock.synchronize { @counts[what] += 1 }
  def answers = @lock.synchronize { @counts.values.sum }

  def ask(flags, random)
    folder = Dir.mktmpdir(nil, @dir)
    round(flags, random, folder, random.rand(5).zero?) until @over
  end

  # Clients of all kinds, while the block is called again and again.
  def under_load
    seed = Random.new_seed % 1_000_000
    threads = CLIENTS.map.with_index { |flags, i| Thread.new { ask(flags, Random.new(seed + i)) } }
    threads.each { |thread| thread.report_on_exception = false }
    goes_on = ->(count) { from = answers; wait_until("answers: #{@one.stderr}") { answers >= from + count || threads.any? { |thread| !thread.alive? } } }
    goes_on.call(3 * REQUESTS)
    DEATHS.times do |i|
      break if threads.any? { |thread| !thread.alive? }

      yield i
      goes_on.call(1 + rand(2 * REQUESTS)) # at any moment of what comes
    end
    goes_on.call(3 * REQUESTS)
    @over = true
    threads.each(&:join)
    puts "# #{name}: #{@counts.sort_by(&:to_s).map { |what, n| "#{what.join(" ")}: #{n}" }.join(", ")}" if ENV.key?("ORIBI_SOAK") || ENV.key?("DEATHS")
  rescue Wrong => e
    flunk "seed #{seed}: #{e.message}\n#{@one.stderr.lines.last(20).join}"
  ensure
    @over = true
    threads&.each { |thread| thread.join rescue nil }
  end

  def count(result) = @counts.sum { |(_, what), n| what == result ? n : 0 }

  # --- descriptors ---

  # Descriptors of a process: how many of each kind.
  def kinds(pid) = E2E::Processes.descriptors(pid).values.map { |to| to.sub(/:\[\d+\]\z/, "") }.tally

  # nil while a process ends, or starts.
  def open_now
    pids = { frontends: frontend_pids, workers: worker_pids }
    pids.transform_values { |all| all.map { |pid| kinds(pid) } } if pids.values.map(&:size) == [FRONTENDS, WORKERS]
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  def sum(processes, pattern) = processes.sum { |kinds| kinds.sum { |kind, n| kind.match?(pattern) ? n : 0 } }

  # A channel is a socket of a frontend, and of a worker a socket and the channel's memory. Beside them, and the writer
  # of temporary files, a frontend has what it had at its start.
  def only_channels?(now)
    more = ->(who, pattern) { sum(now[who], pattern) - sum(@first[who], pattern) }
    others = ->(one) { one[:frontends].map { |kinds| kinds.except("socket", "anon_inode:[eventfd]").sort }.sort_by(&:to_s) }
    [more[:workers, /\Asocket/], more[:workers, /memfd/]].all?(more[:frontends, /\Asocket/]) && others[now] == others[@first]
  end

  def holders
    [@one.pid, *@one.descendants].select { |pid| E2E::Processes.descriptors(pid).values.any? { |to| to.start_with?("#{@dir}/files/") } }
  rescue Errno::ENOENT, Errno::ESRCH
    [nil]
  end

  # No file of an answer is open anywhere, and each channel has two ends.
  def assert_nothing_is_left
    now = nil
    wait_until("files to be closed") { holders.empty? }
    wait_until("channels alone to be left") { (now = open_now) && only_channels?(now) }
  rescue E2E::Timeout => e
    flunk "#{e.message}: at first #{@first}, now #{now}; files of #{holders.map { |pid| E2E::Processes.title(pid) if pid }}"
  end

  # --- cases ---

  def test_workers_that_are_killed
    launch
    under_load do
      kill(:KILL, worker_pids.sample)
      wait_until("all workers: #{@one.stderr}") { worker_pids.size == WORKERS }
    end
    assert_operator count(200), :>, count(502)
    assert_nothing_is_left
    output, status = ctl("reload") # other workers take idle channels over
    assert status.success?, output
    assert_nothing_is_left
  end

  def test_frontends_that_are_killed
    launch
    under_load do
      kill(:KILL, frontend_pids.sample)
      wait_until("all frontends: #{@one.stderr}") { frontend_pids.size == FRONTENDS }
    end
    assert_equal 0, count(502), @counts.to_s
    assert_nothing_is_left
  end

  def test_reloads
    launch
    under_load do
      output, status = ctl("reload")
      assert status.success?, output
    end
    assert_equal 0, count(502) + count(:cut), @counts.to_s
    assert_nothing_is_left
  end

  def test_everything_at_random
    launch
    under_load do |i|
      i % 4 == 3 ? ctl("reload") : kill(:KILL, (i.even? ? worker_pids : frontend_pids).sample)
    end
    wait_until("all processes: #{@one.stderr}") { worker_pids.size == WORKERS && frontend_pids.size == FRONTENDS }
    assert_nothing_is_left
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"
require "openssl"

# Deaths, stops and reloads of workers and frontends while clients of all kinds ask without pause: plain and TLS,
# HTTP/1.1 and HTTP/2, short and long bodies. Every answer that comes is whole and right, or says 502; a connection ends
# early only where doc/internals/frontend.md says so; nobody waits for ever.
#
#   DEATHS=6   in each case       script/test --all: 12, ORIBI_SOAK: 500
E2E.suite("frontend_deaths", transports: %i[tcp]) do
  include FrontendServers

  WORKERS = 3
  FRONTENDS = 2
  DEATHS = Integer(ENV.fetch("DEATHS", ENV.key?("ORIBI_SOAK") ? "500" : E2E::MORE_ROUNDS ? "12" : "6"))
  WAIT_S = 30
  SIZES = [0, 1, 100, 16_384, 32_767, 32_768, 32_769, 1 << 20].freeze
  BODY = Random.new(1).bytes(1 << 20).freeze

  Wrong = Class.new(StandardError)
  Ended = Class.new(StandardError)

  # A connection that asks one request after another.
  class Asker
    def initialize(port, tls)
      @tcp = TCPSocket.new("127.0.0.1", port)
      @tcp.setsockopt(:TCP, :NODELAY, 1)
      @io = tls ? OpenSSL::SSL::SSLSocket.new(@tcp).tap(&:connect) : @tcp
      @read = +"".b
    rescue SystemCallError, OpenSSL::SSL::SSLError => e
      @tcp&.close
      raise Ended, e.message
    end

    def close = @tcp.close

    # [status, body]
    def ask(head, *parts, is_head: false)
      write(head)
      answer = nil
      parts.each do |part|
        answer = read_head if part == :interim
        break if answer && answer[/\A\S+ (\d+)/, 1].to_i >= 200

        write(part) unless part == :interim
      end
      answer = read_head until answer && answer[/\A\S+ (\d+)/, 1].to_i >= 200
      status = answer[/\AHTTP\/1.1 (\d+) /, 1] or raise Wrong, "no answer: #{answer[0, 80].inspect}"
      length = answer[/^content-length: (\d+)\r$/i, 1] or raise Wrong, "no length: #{answer}"
      body = is_head ? "" : take(length.to_i)
      close if answer.match?(/^connection: close\r$/i)
      [status.to_i, body]
    end

    private

    def write(bytes)
      @io.write(bytes)
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => e
      raise Ended, e.message if @read.empty? && !@tcp.closed? && !@tcp.wait_readable(0)
    end

    def fill
      raise Ended, "closed" if @tcp.closed?

      pending = @io.respond_to?(:pending) && @io.pending.positive?
      pending || @tcp.wait_readable(WAIT_S * E2E.patience) or raise Wrong, "no answer in #{WAIT_S} s; #{@read.bytesize} bytes came"
      @read << @io.readpartial(1 << 16)
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => e
      raise Ended, "#{e.class} after #{@read.bytesize} bytes"
    end

    def read_head
      fill until (at = @read.index("\r\n\r\n"))
      @read.slice!(0, at + 4)
    end

    def take(count)
      fill until @read.bytesize >= count
      @read.slice!(0, count)
    end
  end

  # [its kind, words of Asker#ask, what is to come back, is it HEAD]
  def one_request(random)
    size = SIZES.sample(random: random)
    body = BODY.byteslice(random.rand(BODY.bytesize - size + 1), size)
    case random.rand(7)
    when 0, 1 then [:safe, ["GET / HTTP/1.1\r\nHost: a\r\n\r\n"], "Hello, World!", false]
    when 2 then [:safe, ["HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"], "", true]
    when 3 then [:long, ["GET /big?size=300000 HTTP/1.1\r\nHost: a\r\n\r\n"], ("0123456789abcdef" * 18_750), false]
    when 4 then [:unsafe, ["POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\n\r\n".b + body], body, false]
    when 5
      [:unsafe, ["POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{size}\r\nExpect: 100-continue\r\n\r\n", *(:interim if size.positive?), body], body, false]
    else
      chunks = "#{"#{size.to_s(16)}\r\n".b + body + "\r\n" if size.positive?}0\r\n\r\n"
      [:unsafe, ["POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".b + chunks.b], body, false]
    end
  end

  # Counts by kind and result: right, 502, cut. Anything else ends the case.
  def note(kind, result)
    @lock.synchronize { @counts[[kind, result]] += 1 }
  end

  def ask_on(port, tls, random)
    asker = nil
    until @over
      kind, words, want, is_head = one_request(random)
      begin
        asker ||= Asker.new(port, tls)
        status, body = asker.ask(*words, is_head: is_head)
        raise Wrong, "#{words[0][0, 60].inspect}: status #{status}" unless [200, 502].include?(status)
        raise Wrong, "#{words[0][0, 60].inspect}: another body of #{body.bytesize} bytes, not #{want.bytesize}" unless status != 200 || body.b == want.b

        note(kind, status)
        asker = asker.close if status == 502 || random.rand(200).zero?
      rescue Ended
        note(kind, :cut)
        asker = nil
      end
    end
  ensure
    asker&.close
  end

  # Bodies by HTTP/2; curl says why it has ended.
  def ask_by_h2(random)
    number = 0
    until @over
      size = SIZES.sample(random: random)
      file = "#{@dir}/h2.#{random.seed}"
      body = BODY.byteslice(number += 1, size)
      File.binwrite(file, body)
      out, _, status = Open3.capture3(FrontendServers::PLAIN, "curl", "-sS", "--http2", "--cacert", "#{@dir}/site.pem", "--max-time", WAIT_S.to_s,
                                      "-w", "%{http_code}", "-H", "Expect:", "--data-binary", "@#{file}", "https://localhost:#{@one.port}/echo", binmode: true)
      code = out.slice!(-3, 3).to_i
      raise Wrong, "HTTP/2: no answer in #{WAIT_S} s" if status.exitstatus == 28

      if !status.success?
        note(:unsafe, :cut)
      elsif code == 502
        note(:unsafe, 502)
      elsif code != 200 || out != body
        raise Wrong, "HTTP/2: status #{code}, #{out.bytesize} bytes, not #{size}"
      else
        note(:unsafe, 200)
      end
    end
  end

  # Deaths of one kind under load; gives the counts.
  def under_mixed_load
    @plain = E2E.free_port
    serve("--workers", WORKERS.to_s, "--frontends", FRONTENDS.to_s, "--bind", "tcp://127.0.0.1:#{@plain}?frontend=on")
    @lock = Mutex.new
    @counts = Hash.new(0)
    @over = false
    seed = Random.new_seed % 1_000_000
    askers = [[@plain, false]] * 3 + [[@one.port, true]] * 2
    threads = askers.map.with_index { |(port, tls), i| Thread.new { ask_on(port, tls, Random.new(seed + i)) } }
    threads << Thread.new { ask_by_h2(Random.new(seed + askers.size)) }
    threads.each { |thread| thread.report_on_exception = false }
    wait_until("answers") { @counts.values.sum > 50 || threads.any? { |thread| !thread.alive? } }
    DEATHS.times do |i|
      break if threads.any? { |thread| !thread.alive? }

      sleep(rand * 0.1)
      yield i
    end
    before = @counts.values.sum
    wait_until("more answers: #{@one.stderr}") { @counts.values.sum > before + 50 || threads.any? { |thread| !thread.alive? } }
    @over = true
    threads.each(&:join)
    diag = @counts.sort_by(&:to_s).map { |(kind, result), n| "#{kind} #{result}: #{n}" }.join(", ")
    puts "# #{name}: #{diag}" if ENV.key?("ORIBI_SOAK") || ENV.key?("DEATHS")
    @counts
  rescue Wrong => e
    flunk "seed #{seed}: #{e.message}\n#{@one.stderr.lines.last(20).join}"
  ensure
    @over = true
    threads&.each { |thread| thread.join(WAIT_S) rescue nil }
  end

  def count(kinds, result) = Array(kinds).sum { |kind| @counts[[kind, result]] }

  # It was the last to answer, so that the next request lies in its ring, which it has not begun to read.
  def test_a_worker_that_is_stopped_keeps_no_request
    serve("--workers", "2", "--frontends", "1", address: FrontendServers::PLAIN_ADDRESS)
    client = connect(@one)
    5.times do
      stopped = client.get("/pid").body.to_i
      Process.kill(:STOP, stopped)
      others = Array.new(3) { client.post("/digest", "abc").status && client.get("/pid").body.to_i }
      Process.kill(:CONT, stopped)
      refute_includes others, stopped
    end
  ensure
    client&.close
  end

  # The first request goes through the hand-off queue, for which the kernel wakes one worker: each of two in turn.
  def test_a_worker_that_is_stopped_keeps_no_wake_up
    2.times do |i|
      serve("--workers", "2", "--frontends", "1", address: FrontendServers::PLAIN_ADDRESS)
      stopped = worker_pids.sort[i]
      Process.kill(:STOP, stopped)
      client = connect(@one)
      answered = client.get("/pid").body.to_i
      Process.kill(:CONT, stopped)
      refute_equal stopped, answered
      client.close
      @one.stop
    end
  end

  # Safe requests go to other workers, others get 502; only what was begun is cut.
  def test_workers_that_are_killed
    under_mixed_load do
      kill(:KILL, worker_pids.sample)
      wait_until("all workers: #{@one.stderr}") { worker_pids.size == WORKERS }
    end
    assert_equal 0, count(:safe, 502) + count(:safe, :cut) + count(:unsafe, :cut), @counts.to_s
    assert_operator count(%i[safe unsafe long], 502) + count(:long, :cut), :<=, DEATHS * 6
  end

  # Connections end with their frontend, and nothing else.
  def test_frontends_that_are_killed
    under_mixed_load do
      kill(:KILL, frontend_pids.sample)
      wait_until("all frontends: #{@one.stderr}") { frontend_pids.size == FRONTENDS }
    end
    assert_equal 0, count(%i[safe unsafe long], 502), @counts.to_s
  end

  # Nothing is lost, and only what a stopped process has waits.
  def test_processes_that_are_stopped_and_go_on
    under_mixed_load do |i|
      pid = (i.odd? ? frontend_pids : worker_pids).sample
      kill(:STOP, pid)
      before = @counts.values.sum
      wait_until("others' answers: #{@one.stderr}") { @counts.values.sum > before + 5 } unless i.odd?
      sleep(rand * 0.3)
      kill(:CONT, pid)
    end
    assert_equal 0, count(%i[safe unsafe long], 502) + count(%i[safe unsafe long], :cut), @counts.to_s
  end

  def test_reloads
    under_mixed_load do |i|
      next if (i % 4).positive?

      output, status = ctl("reload")
      assert status.success?, output
    end
    assert_equal 0, count(%i[safe unsafe long], 502) + count(%i[safe unsafe long], :cut), @counts.to_s
  end

  # All at once.
  def test_everything_at_random
    under_mixed_load do |i|
      kill(i.even? ? :KILL : :STOP, pid = (rand(3).zero? ? frontend_pids : worker_pids).sample)
      sleep(rand * 0.1)
      kill(:CONT, pid)
      ctl("reload") if (i % 10) == 9
    end
  end
end

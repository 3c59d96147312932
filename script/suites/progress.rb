# frozen_string_literal: true

require "json"

# Tells every few seconds how far the suites are and how long the rest takes, by what each command took last time.
class Progress
  SECONDS_TERMINAL = 2
  SECONDS_LOG = 30
  QUIET_SECONDS = 10 # what is shorter needs no progress

  # Seconds by a command's name, from run to run.
  class Times
    PATH = "build/test/times.json"

    def initialize
      @seconds = File.exist?(PATH) ? JSON.parse(File.read(PATH)) : {}
    rescue JSON::ParserError
      @seconds = {}
    end

    def [](name) = @seconds[name]

    def store(new)
      @seconds.merge!(new)
      File.write("#{PATH}.#{Process.pid}", JSON.pretty_generate(@seconds.sort.to_h))
      File.rename("#{PATH}.#{Process.pid}", PATH)
    end
  end

  def self.clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # "4 min 10 s"
  def self.span(seconds)
    minutes, seconds = seconds.round.divmod(60)
    minutes.positive? ? "#{minutes} min #{seconds} s" : "#{seconds} s"
  end

  # Runs the block and tells, while it lasts, how long it has been running; expected: seconds it took last time, or nil.
  def self.of(what, expected)
    started = clock
    shown = Thread.new do
      loop do
        sleep(QUIET_SECONDS)
        passed = clock - started
        left = expected && expected > passed ? "about #{span(expected - passed)} left" : "#{span(passed)} so far"
        warn "#{what}: #{left}"
      end
    end
    yield
  ensure
    shown&.kill&.join
  end

  def initialize(suites)
    @suites = suites
    @lock = Mutex.new
  end

  def while_shown
    @started = Progress.clock
    shown = Thread.new { loop { sleep($stderr.tty? ? SECONDS_TERMINAL : SECONDS_LOG) && show } }
    yield
  ensure
    shown&.kill&.join
    $stderr.print "\r\e[K" if $stderr.tty?
  end

  # Lines that stay.
  def print(lines)
    @lock.synchronize do
      $stderr.print "\r\e[K" if $stderr.tty?
      $stdout.puts lines
      $stdout.flush
    end
  end

  private

  def show
    passed = Progress.clock - @started
    return if passed < QUIET_SECONDS

    @lock.synchronize { $stderr.tty? ? $stderr.print("\r\e[K#{line(passed)[0, 110]}") : $stderr.puts(line(passed)) }
  end

  def line(passed)
    done, left = @suites.map { |suite| suite.seconds_done_and_left }.transpose.map(&:sum)
    rest = done > 1 ? "about #{Progress.span(passed * left / done)} left" : "#{Progress.span(passed)} so far"
    failed = @suites.sum { |suite| suite.tally.failed }
    [rest, *("#{failed} failed" if failed.positive?), *@suites.filter_map(&:state)].join(", ")
  end
end

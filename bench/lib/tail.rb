# frozen_string_literal: true

require "fileutils"
require_relative "../isucon4/tools"
require_relative "../rails/app"
require_relative "flame"
require_relative "peer"
require_relative "running"

module Bench
  # What the slowest requests of Rails are made of, at 80 % of what the server can do, with two workers on one
  # processor, as the workload `rails` has them: the wait for a worker, and of the call its processor time, the
  # garbage collector, the processor's run queue, and sleep. bench/apps/tail.ru around the application notes all of
  # that for each call. The wait is split by what the workers did meanwhile: one that was in no call had nothing to
  # do, or waited for the processor itself.
  class Tail
    APP = File.join(ROOT, "bench/apps/tail.ru")
    WORKERS = 2
    WARM_S = 3
    LOAD_SHARE = 0.8
    BROWSERS = { closed: 8, open: 64 }.freeze
    SLOW = 0.99

    # Times in µs. at: complete on the wire; began, ended: its call.
    Call = Struct.new(:worker, :at, :began, :ended, :cpu, :run_queue, :gc, keyword_init: true) do
      def total = ended - at
      def wait = began - at
      def wall = ended - began
      def asleep = [wall - cpu - run_queue, 0].max
    end

    # The calls of a worker's file.
    def self.read(worker, text)
      text.lines.map do |line|
        began, wait, wall, cpu, run_queue, gc = line.split.map(&:to_i)
        Call.new(worker: worker, at: began - wait, began: began, ended: began + wall, cpu: cpu, run_queue: run_queue / 1000, gc: gc)
      end
    end

    # For how long of [from, to] at least one of so many workers was in no call.
    def self.idle_within(calls, from, to, workers)
      edges = calls.select { |call| call.began < to && call.ended > from }
                   .flat_map { |call| [[[call.began, from].max, 1, call.worker], [[call.ended, to].min, -1, call.worker]] }.sort
      under_way = Hash.new(0) # by worker, which may have several threads
      last = from
      idle = 0
      [*edges, [to, 0, nil]].each do |at, step, worker|
        idle += at - last if under_way.values.count(&:positive?) < workers
        last = at
        under_way[worker] += step
      end
      idle
    end

    # How long the same calls would take with one worker that has the processor to itself, the oldest first.
    def self.ideal(calls)
      free = 0
      calls.sort_by(&:at).map do |call|
        free = [free, call.at].max + call.cpu
        free - call.at
      end
    end

    # { "outer;inner" => µs } of some of the calls.
    def self.stacks(some, calls, workers)
      sums = Hash.new(0)
      some.each do |call|
        idle = idle_within(calls, call.at, call.began, workers)
        sums["wait for a worker;all workers in calls"] += call.wait - idle
        sums["wait for a worker;one in no call"] += idle
        sums["call;processor;application"] += [call.cpu - call.gc, 0].max
        sums["call;processor;garbage collector"] += [call.gc, call.cpu].min
        sums["call;run queue of the processor"] += call.run_queue
        sums["call;asleep"] += call.asleep
      end
      sums.select { |_, us| us.positive? }
    end

    def initialize(context, peer, folder:)
      @context = context
      @peer = peer
      @folder = folder
    end

    # Prints what it found and leaves the picture in the folder.
    def run(seconds)
      calls = measured(seconds)
      raise "#{@peer.name} noted no calls" if calls.empty?

      sorted = calls.sort_by(&:total)
      groups = { "all" => sorted, "the slowest 1 %" => sorted.drop((sorted.size * SLOW).floor) }
      groups.each { |name, some| tell(name, some, calls) }
      tell_curve(sorted.map(&:total), Tail.ideal(calls).sort)
      puts picture(groups.values.last, calls).delete_prefix("#{ROOT}/")
    end

    private

    def measured(seconds)
      app = RailsApp.new.prepare
      scratch = @context.scratch("tail")
      app.start(scratch)
      env = app.environment(scratch).merge("BENCH_TAIL_APP" => app.config_ru, "BENCH_TAIL_DIR" => @context.scratch("calls"))
      running = Running.new(@peer, @context, app: APP, workers: WORKERS, env: env, chdir: app.dir).start
      drive(running, :closed, seconds: WARM_S)
      rate = drive(running, :closed, seconds: WARM_S)[:scenarios_per_second] * LOAD_SHARE
      known = files(env).to_h { |path| [path, File.size(path)] }
      drive(running, :open, rate: rate.round(3), seconds: seconds, seed: 99)
      files(env).flat_map { |path| Tail.read(File.basename(path), File.read(path).byteslice(known.fetch(path, 0)..)) }
    ensure
      running&.stop
    end

    def files(env) = Dir[File.join(env.fetch("BENCH_TAIL_DIR"), "*")]

    def drive(running, loop, **more)
      Isucon4.drive("posts", running.listen, wrap: @context.on_client_core([]), workers: BROWSERS.fetch(loop), **more)
    end

    def tell(name, some, calls)
      puts format("Rails, %s: %s, %d calls of %.1f ms", @peer.name, name, some.size, some.sum(&:total) / 1000.0 / some.size)
      sums = Tail.stacks(some, calls, WORKERS)
      sums.sort_by { |_, us| -us }.each do |what, us|
        puts format("  %5.1f %%  %6.2f ms  %s", us * 100.0 / sums.values.sum, us / 1000.0 / some.size, what.tr(";", ","))
      end
    end

    def tell_curve(real, ideal)
      { "measured" => real, "one worker alone on the processor, same arrivals and processor time" => ideal }.each do |name, times|
        puts format("  p50 %.1f, p90 %.1f, p99 %.1f ms: %s", *[0.5, 0.9, 0.99].map { |part| times[(times.size * part).floor] / 1000.0 }, name)
      end
    end

    def picture(some, calls)
      FileUtils.mkdir_p(@folder)
      File.expand_path("rails-tail-#{@peer.key}.svg", @folder).tap do |path|
        File.write(path, Flame.new(Tail.stacks(some, calls, WORKERS), "Rails, #{@peer.name}: the slowest 1 % of the requests").to_s)
      end
    end
  end
end

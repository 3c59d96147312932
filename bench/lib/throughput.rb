# frozen_string_literal: true

require_relative "checker"
require_relative "request"
require_relative "running"
require_relative "workload"
require_relative "wrk"

module Bench
  HELLO_APPS = { rack: File.join(ROOT, "bench/apps/hello.ru"), psgi: File.join(ROOT, "bench/apps/hello.psgi") }.freeze
  HELLO_LENGTH_APPS = { rack: File.join(ROOT, "bench/apps/hello-length.ru"), psgi: File.join(ROOT, "bench/apps/hello-length.psgi") }.freeze
  BODIES_APPS = { rack: File.join(ROOT, "bench/apps/bodies.ru"), psgi: File.join(ROOT, "bench/apps/bodies.psgi") }.freeze
  # The last two are for Oribi with the one line.
  FORMS_APPS = { rack: "forms.ru", psgi: "forms.psgi", rack_line: "forms.ru", psgi_line: "forms.psgi" }
               .transform_values { |name| File.join(ROOT, "bench/apps", name) }.freeze

  # As many requests as a server takes in short rounds, the servers by turns so that the machine's moods meet all alike;
  # each round begins with another one. Requests per second, and processor time of the server's process tree per
  # request.
  #
  #     Throughput.define("hello", about: "...", kinds: %i[rack psgi reference], connections: 32) { Request.new }
  class Throughput < Workload
    MAIN = %w[oribi puma unicorn pitchfork falcon iodine agoo rhebok passenger oribi-psgi starlet starman twiggy uwsgi].freeze
    REFERENCES = %w[bare nginx-return nginx-file].freeze
    ROUND_SECONDS = 0.3..5.0
    # Shorter ones are for --quick: in them the beginning of a round weighs as much as the rest, and servers look alike.
    FULL_ROUND_SECONDS = 0.6
    WARM_SECONDS = 0.3
    # More and shorter rounds narrow the interval of a ratio; fewer and longer ones do not.
    ROUNDS_MAX = 15
    WANTED_ROUND_SECONDS = 0.8
    # A round without a single answer is tried once more, as long as this, before it counts against the server; that it
    # was is noted.
    SECOND_CHANCE_S = 2
    # What a round takes beside its load, and a server to start, as a rule.
    ROUND_COST_S = 0.12
    START_COST_S = 0.5

    Round = Struct.new(:requests, :seconds, :cpu_seconds, keyword_init: true) do
      def per_second = requests / seconds
      def cpu_us = cpu_seconds / requests * 1e6
    end

    # A server with what was found about it.
    Measured = Struct.new(:peer, :running, :checker, :wire_bytes, :rounds, :complaints, :died, :retried, keyword_init: true)

    class << self
      attr_reader :settings

      # kinds, only: which servers. app: HELLO_APPS, BODIES_APPS or FORMS_APPS. connections, pipeline, close: how they
      # are asked.
      # variants: every configuration of one server. references: which of those, if their kind is asked for. round_min:
      # seconds of the shortest round.
      # needs: what a server may lack (Peer#lacks). The block makes the Request.
      def define(name, about:, kinds: %i[rack psgi], app: HELLO_APPS, connections: 32, pipeline: 1, close: false, variants: false,
                 base: self, listen: :tcp, needs: nil, note: nil, round_min: ROUND_SECONDS.min, references: REFERENCES, **options, &request)
        Class.new(base) do
          @settings = { kinds: kinds, app: app, connections: connections, pipeline: pipeline, close: close, variants: variants, listen: listen,
                        needs: needs, note: note, round_min: round_min, references: references, request: request }.freeze
          register name, about: about, **options
        end
      end
    end

    def results(&block)
      measured = participants.filter_map { |peer| begin_with(peer, &block) }
      measure(measured)
      measured.each { |one| report(one, &block) }
    ensure
      finish
    end

    # Servers of this site stay when the next workload wants it too.
    def site = { app: settings[:app], close: settings[:close], listen: settings[:listen] }

    private

    def settings = self.class.settings
    def request = @request ||= settings[:request].call
    # Paths that are asked for by turns, nil: the request's own alone.
    def paths = nil

    def participants
      only = settings[:variants] ? nil : MAIN + settings[:references]
      servers(*settings[:kinds], only: only)
    end

    # A server that cannot do what is asked is a result without values: never silently dropped.
    def begin_with(peer)
      if settings[:needs] && peer.lacks?(settings[:needs])
        yield absent(peer, "has no #{settings[:needs].to_s.tr("_", "-")}")
        return
      end
      progress("starting #{peer.name}")
      running = start(peer)
      checker = checker_of(running)
      one = Measured.new(peer: peer, running: running, checker: checker, rounds: [], complaints: Hash.new(0), retried: [])
      one.wire_bytes = context.turn(running) { checker.check }
      raise Running::Failed, "answers wrong: #{checker.complaints.first || "nothing came"}" if checker.complaints.any? || one.wire_bytes.nil?

      load(one, [WARM_SECONDS, settings[:round_min]].max)
      one
    rescue Running::Failed, SystemCallError, RuntimeError => e
      context.drop(running) if running
      yield absent(peer, e.message.delete_prefix("#{peer.name} "), errors: 1)
      nil
    end

    def app_of(peer) = settings[:app].equal?(HELLO_APPS) && peer.lacks?(:length) ? HELLO_LENGTH_APPS : settings[:app]
    def start(peer) = context.server(peer, **site, app: app_of(peer))
    def checker_of(running) = Checker.new(-> { client(running) }, request)
    def client(running) = running.connect
    def address(running) = running.listen
    def scheme = "http"
    def finish = nil

    def wrk
      @wrk ||= begin
        path = request.body && File.join(context.scratch("body"), "body").tap { |name| File.binwrite(name, request.body) }
        by_turns = paths && File.join(context.scratch("paths"), "paths").tap { |name| File.write(name, paths.map { |one| "#{one}\n" }.join) }
        Wrk.new(context, request, connections: settings[:connections], body_path: path, paths_path: by_turns, pipeline: settings[:pipeline],
                                  scheme: scheme)
      end
    end

    def load(one, seconds, again: true)
      before = used = nil
      found = context.turn(one.running) do
        before = one.running.cpu_seconds
        one.checker.during { wrk.run(address(one.running), seconds) }.tap { used = one.running.cpu_seconds - before }
      end
      if again && found.requests.zero? && one.running.alive?
        one.retried << seconds
        return load(one, SECOND_CHANCE_S, again: false)
      end
      raise Running::Failed, "no answers under load#{": #{found.errors}" if found.errors.any?}" unless found.requests.positive?

      # One an answer; whatever is above that is an error.
      closes = one.checker.ends_by_close || one.checker.closes_unsaid
      found.errors.delete("read") if closes && found.errors["read"].to_i <= found.requests + settings[:connections]
      found.errors.each { |what, count| one.complaints["wrk: #{what}"] += count }
      compare_bytes(one, found)
      Round.new(requests: found.requests, seconds: found.seconds, cpu_seconds: used)
    end

    # All answers together are as long as so many of the one that was looked at; those under way at the end are the
    # tolerance.
    def compare_bytes(one, found)
      expected = found.requests * one.wire_bytes
      tolerance = settings[:connections] * settings[:pipeline] * one.wire_bytes + expected / 100 + 512
      return if (found.bytes - expected).abs <= tolerance

      one.complaints["#{found.bytes} bytes for #{found.requests} answers of #{one.wire_bytes}"] += 1
    end

    def measure(measured)
      rounds, seconds = plan(measured.size)
      rounds.times do |round|
        order = measured.reject(&:died)
        order.rotate(round % [order.size, 1].max).each do |one|
          progress("round #{round + 1} of #{rounds}, #{one.peer.name}")
          one.rounds << load(one, seconds)
        rescue Running::Failed, SystemCallError, RuntimeError => e
          one.died = one.running.alive? ? e.message : "died in round #{round + 1}: #{one.running.last_words(1)}"
        end
      end
      measured.each { |one| context.turn(one.running) { one.checker.check } unless one.died }
    end

    # [rounds, seconds of one]: seconds give way first, then rounds, down to the least that is asked for.
    def plan(count)
      left = [share_s - count * (START_COST_S + WARM_SECONDS), 1].max
      rounds = context.rounds_min
      seconds = left / [count, 1].max / rounds - ROUND_COST_S
      while rounds < ROUNDS_MAX && seconds > WANTED_ROUND_SECONDS && !context.quick?
        rounds += 1
        seconds = left / count / rounds - ROUND_COST_S
      end
      shortest = context.quick? ? settings[:round_min] : [settings[:round_min], FULL_ROUND_SECONDS].max
      [rounds, seconds.clamp(shortest, ROUND_SECONDS.max)]
    end

    def report(one)
      asked = one.checker
      errors = one.complaints.values.sum + asked.complaints.size + (one.died ? 1 : 0)
      note = [one.died, *asked.complaints.first, *one.complaints.keys.first(2), settings[:note], *habits(one)].compact.join("; ")
      note = nil if note.empty?
      shape = { rounds: one.rounds.size, retried: one.retried.size, seconds: one.rounds.sum(&:seconds).round(2), checked: asked.asked - asked.unanswered }
      shape.delete(:retried) if one.retried.empty?
      yield result(one.peer, "requests_per_second", one.rounds.map(&:per_second), unit: "1/s", better: "higher", errors: errors, note: note, **shape)
      yield result(one.peer, "cpu_us_per_request", one.rounds.map(&:cpu_us), unit: "µs", better: "lower", errors: errors, note: note, **shape)
      context.drop(one.running) if one.died
    end

    # What is no error, and yet to be known.
    def habits(one)
      asked = one.checker
      [("takes #{(one.running.restless * 100).round} % of a core when nobody asks it anything: stopped between its turns" if one.running.restless),
       ("#{one.retried.size} of the rounds without an answer for #{one.retried.max.round(1)} s, measured again" if one.retried.any?),
       ("closes without saying so" if asked.closes_unsaid),
       ("#{asked.unanswered} of #{asked.asked} newcomers were not answered within 0.5 s" if asked.unanswered.positive?)]
    end

    def absent(peer, reason, errors: 0) = result(peer, "requests_per_second", [], unit: "1/s", better: "higher", errors: errors, note: reason)
  end
end

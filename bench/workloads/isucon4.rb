# frozen_string_literal: true

require_relative "../lib/driven_workload"
require_relative "../isucon4/data"
require_relative "../isucon4/stores"
require_relative "../isucon4/front"

module Bench
  # The ISUCON4 qualifier (bench/isucon4/README.md): the same bank in Roda and in plain Plack.
  class BankWorkload < DrivenWorkload
    HERE = File.join(ROOT, "bench/isucon4")

    private

    def apps = { rack: File.join(HERE, "rack/config.ru"), psgi: File.join(HERE, "psgi/app.psgi") }
    def scenario = "bank"
    def store_kind = "sqlite"
    def workers = 2
    def options = { data: @data.users_path }
    def environment = @store.env.merge("ISUCON4_PUBLIC" => @data.public_dir)
    def before_run(_target) = @store.reset
    def finish = @store&.stop

    def prepare
      spent_s
      progress("data of #{Isucon4::Data::USERS} users")
      @data = Isucon4::Data.new(File.join(ROOT, "build/isucon4"), users: Isucon4::Data::USERS).generate
      store = Isucon4.store(store_kind, @data, context.scratch("store"))
      progress("store: #{store_kind}")
      @store = store.start
    end

    # Assets are not always the server's.
    def cpu_us(round) = round[:cpu_seconds] * 1e6 / round[:pages]

    # The contest's score is that of a minute.
    def yield_rounds(target, rounds)
      yield result(target.peer, "score", rounds.map { |round| round[:score] * 60.0 / round[:seconds] }, unit: "points", better: "higher")
      yield result(target.peer, "driver_cpu_percent", rounds.map { |round| round[:driver_cpu_share] * 100 }, unit: "%", better: "lower")
    end

    def measure_closed(targets, share, &block)
      yield_limit(&block)
      super
    end

    # What the driver can do against a bank in C with nothing in the way, on the same cores.
    def yield_limit
      limit = Isucon4::Perfect.new(@data, context).start
      found = Isucon4.drive(scenario, limit.listen, wrap: context.on_client_core([]), workers: browsers, seconds: context.quick? ? 1 : 5, **options)
      note = "a bank in C, #{(found[:driver_cpu_share] * 100).round} % of a core for the driver"
      yield result("driver", "requests_per_second", [found[:requests_per_second]], unit: "1/s", better: "higher", note: note, variant: "limit",
                   errors: found[:error_count] + (found[:valid] ? 0 : 1))
    ensure
      limit&.stop
    end
  end

  # Without assets and without a proxy: what is left is the application and its server.
  class BankSqlite < BankWorkload
    register "isucon4-sqlite", about: "the ISUCON4 qualifier, SQLite, straight at the server", family: "isucon4", weight: 4.0
  end

  # As in the contest, users and log in MariaDB and counters in Redis; more workers, since they wait.
  class BankContest < BankWorkload
    register "isucon4-contest", about: "the ISUCON4 qualifier, Redis and MariaDB, straight at the server", family: "isucon4", weight: 4.0, quick: false

    private

    def store_kind = "contest"
    def workers = 4
  end

  # With the four assets of each page, which nginx serves, and the application behind it on a unix socket.
  class BankFront < BankWorkload
    register "isucon4-nginx", about: "the ISUCON4 qualifier, SQLite, assets and nginx in front", family: "isucon4", weight: 4.0, quick: false

    private

    def listen = :unix
    def options = super.merge(public: @data.public_dir)
    def front(running) = Isucon4::Front.new(running.listen, @data, context).start
  end
end

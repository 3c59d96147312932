# frozen_string_literal: true

require_relative "support"
require_relative "support/status"

# Metrics of the application's own: exact whatever happens to workers, over reloads, and wherever they are changed.
E2E.suite("app_metrics", transports: %i[tcp]) do
  include E2E::InWorkspace
  include E2E::WithStatus

  CLIENTS = 4
  REQUESTS = 150 # of each
  GONE = [Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EPIPE, EOFError, E2E::Client::Closed].freeze

  def setup
    super
    FileUtils.cp("e2e/apps/metrics#{E2E.differing(:app_extension)}", @space.app)
  end

  # So many requests of each client, on connections that are kept while they last. Answered and lost.
  def load_with(one)
    counts = Array.new(CLIENTS) do
      Thread.new do
        client = nil
        (1..REQUESTS).map do
          (client ||= E2E::Client.new(one.address)).get("/").status == 200
        rescue *GONE
          client&.close
          client = nil
          false
        end.tally.tap { client&.close }
      end
    end.map(&:value)
    [true, false].map { |which| counts.sum { |count| count.fetch(which, 0) } }
  end

  # Kills each worker that there is, again and again, until the load is done.
  def load_with_kills(one)
    running = true
    killer = Thread.new do
      kills = 0
      while running || kills < 3
        pid = pids.sample
        kills += Process.kill(:KILL, pid) if pid&.positive?
        wait_until("workers to be there again") { metrics['oribi_worker_exits_total{reason="signal"}'] == kills }
      end
      kills
    end
    counts = load_with(one)
    running = false
    [*counts, killer.value]
  end

  def promtool(text)
    return unless system("command -v promtool >/dev/null")

    IO.popen(%w[promtool check metrics], "r+", err: %i[child out]) do |promtool|
      promtool.write(text)
      promtool.close_write
      assert_equal "", promtool.read
    end
  end

  # What a killed worker counted is counted, answered or not.
  def test_counts_are_exact_over_kills_and_reloads
    one = serve("--workers", "3", "--spawn-interval", "0")
    answered, lost, kills = load_with_kills(one)
    all = metrics
    counted = all['shop_answers_total{path="/"}']
    assert_includes answered..(answered + lost), counted, "#{answered} answered, #{lost} lost, #{kills} kills"
    assert_in_delta counted, all["shop_times_seconds_count"], kills
    assert_equal 0, all["oribi_app_series_lost"]
    assert_equal 0.5, all["shop_loads_total"]
    wait_until("workers to be there again") { ready? }
    answered, = load_with(one)
    assert_equal CLIENTS * REQUESTS, answered
    assert_equal 0, ctl("reload")
    assert_equal [200] * 10, Array.new(10) { one.get("/").status }
    all = metrics
    assert_equal counted + answered + 10, all['shop_answers_total{path="/"}']
    assert_equal 1, all["shop_loads_total"]
    File.write(@space.app, File.read(@space.app).gsub(/labels(:| =>) \[(:path|'path')\]/) { "labels#{$1} [#{$2.sub("path", "place")}]" }
                               .gsub(/path( =>|:) ("|')/) { "place#{$1} #{$2}" }.gsub(/path( =>|:) (\$?path)/) { "place#{$1} #{$2}" })
    assert_equal 0, ctl("reload")
    assert_equal 200, one.get("/").status
    assert_equal({ 'shop_answers_total{place="/"}' => 1 }, metrics.select { |name,| name.start_with?("shop_answers") })
  end

  def test_metrics_are_changed_everywhere
    one = serve("--workers", "2", "--no-preload", "--metrics-max", "12", *(E2E::RUBY ? ["--threads", "5"] : []))
    wait_for_metric("shop_loads_total", 1)
    one.get("/fork")
    4.times { one.get("/more") }
    holder = one.get("/hold").body.to_i
    wait_for_metric("shop_held", 3)
    assert_match(/\Ashop_answers: there is a counter shop_answers with path already/, one.get("/otherwise").body)
    all = metrics
    assert_equal({ 'shop_answers_total{path="/"}' => 5, 'shop_answers_total{path="/more"}' => 4, "shop_loads_total" => 1,
                   "oribi_app_series_max" => 12, 'oribi_app_changes_dropped_total{reason="no_room"}' => 0 },
                 all.select { |name,| name.match?(/shop_(ans|load)|series_max|no_room/) })
    assert_equal 200, one.get("/lazy?20").status
    all = metrics
    assert_equal 12, all["oribi_app_series"]
    kept = all.count { |name,| name.start_with?("shop_lazy") }
    assert_equal 20 - kept, all['oribi_app_changes_dropped_total{reason="no_room"}']
    assert_equal 1, one.stderr.scan(/warn: shop_lazy: there is no room for another series \(metrics_max 12\)/).size
    promtool(ask("/metrics").body)
    assert_includes ask("/metrics", "Accept" => "application/openmetrics-text").body, "# TYPE shop_answers counter\nshop_answers_total{path=\"/\"} 5\n"
    app = server_status["app"]
    assert_equal [12, 12, 0], app.values_at("series", "series_max", "series_lost")
    assert_includes app["metrics"].find { |metric| metric["name"] == "shop_answers_total" }["series"], { "labels" => { "path" => "/more" }, "value" => 4 }
    Process.kill(:KILL, holder)
    wait_for_metric("shop_held", 0)
    assert_equal 0, metrics["shop_users"]
  end

  def test_values_go_on_over_an_upgrade
    one = serve("--workers", "2", "--pid-file", "#{@space.dir}/pid", group: true)
    5.times { assert_equal 200, one.get("/").status }
    one.get("/hold")
    assert_equal [5, 3], metrics.values_at('shop_answers_total{path="/"}', "shop_held")
    assert_equal 0, ctl("upgrade")
    successor = File.read("#{@space.dir}/pid").to_i
    wait_until("the successor to answer") do
      server_status["pid"] == successor && metrics["shop_held"].zero?
    rescue *GONE
      nil
    end
    one.get("/hold")
    3.times { assert_equal 200, one.get("/").status }
    assert_equal [8, 3, 1, 0], metrics.values_at('shop_answers_total{path="/"}', "shop_held", "shop_loads_total", "oribi_app_series_lost")
    assert_equal 0, ctl("reload")
    assert_equal 200, one.get("/").status
    assert_equal 9, metrics['shop_answers_total{path="/"}']
    assert_equal 0, ctl("stop")
    wait_until("the successor to end") { one.group.empty? }
  end

  def test_no_metrics_at_all
    one = serve("--metrics-max", "0")
    assert_equal 200, one.get("/").status
    assert_equal 200, one.get("/hold").status
    all = metrics
    assert_equal 0, all["oribi_app_series_max"]
    assert_empty all.keys.grep(/shop/)
    refute_match(/ warn: /, one.stderr)
  end
end

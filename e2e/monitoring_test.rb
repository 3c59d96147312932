# frozen_string_literal: true

require_relative "support"
require_relative "support/prometheus"
require_relative "support/workspace"
require "open3"

# The examples of examples/monitoring do what doc/monitoring.md promises: a real Prometheus takes them in the steps of
# that page, scrapes a server, and evaluates every rule and every expression of the dashboard.
E2E.suite("monitoring", transports: %i[tcp]) do
  include E2E::InWorkspace

  const_set(:EXAMPLES, File.join(E2E::ROOT, "examples/monitoring"))
  const_set(:VARIABLES, { "$job" => ".*", "$instance" => ".*", "$__rate_interval" => "1m" }.freeze)

  def example(name) = File.read(File.join(self.class::EXAMPLES, name))
  def document = @document ||= File.read(File.join(E2E::ROOT, "doc/monitoring.md"))
  def dashboard = @dashboard ||= JSON.parse(example("grafana-dashboard.json"))
  def panels = dashboard["panels"].reject { |panel| panel["type"] == "row" }

  def expressions
    (panels.flat_map { |panel| panel["targets"] } + dashboard["annotations"]["list"]).filter_map { |one| one["expr"] }
  end

  def promtool(*words)
    text, status = Open3.capture2e("promtool", *words, chdir: self.class::EXAMPLES)
    assert status.success?, text
  end

  def wants_prometheus
    skip "no prometheus and promtool here (Debian: prometheus)" unless E2E::Prometheus.here?
  end

  # Names of all samples: the table of the page, which core/test/observe/metrics_test.c compares with the code.
  def names
    document.scan(/^\| `(oribi_\w+)` \| (\w+) \|/).flat_map do |name, kind|
      kind == "histogram" ? %w[bucket sum count].map { |end_of| "#{name}_#{end_of}" } : [name]
    end
  end

  def test_every_metric_that_is_named_is_there
    known = names + example("oribi.rules.yml").scan(/record: (\S+)/).flatten
    assert_operator known.size, :>, 40
    watched = document[/^## Alerts.*?(?=^## )/m]
    [*expressions, *example("oribi.rules.yml").lines.grep_v(/^ *#/), watched].each do |text|
      assert_empty text.scan(/\boribi[_:][\w:]+/) - known - document.scan(/^\| `(oribi_\w+)` \|/).flatten, text
    end
  end

  def test_the_dashboard_is_whole
    ids = dashboard["panels"].map { |panel| panel["id"] }
    assert_equal ids.uniq, ids
    taken = dashboard["panels"].flat_map do |panel|
      x, y, w, h = panel["gridPos"].values_at("x", "y", "w", "h")
      assert_operator x + w, :<=, 24, panel["title"]
      [*x...(x + w)].product([*y...(y + h)])
    end
    assert_equal taken.uniq.size, taken.size, "panels lie over each other"
    panels.each do |panel|
      assert_equal({ "type" => "prometheus", "uid" => "${datasource}" }, panel["datasource"])
      assert_equal panel["targets"].map { |one| one["refId"] }.uniq.size, panel["targets"].size
    end
  end

  def test_rules_alert_when_they_should
    wants_prometheus
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "oribi.rules.yml")
    promtool("test", "rules", "oribi.rules.test.yml")
    alerts = example("oribi.rules.yml").scan(/alert: (\w+)/).flatten
    assert_equal alerts, example("oribi.rules.test.yml").scan(/alertname="(\w+)"/).flatten, "each alert has a test"
    assert_equal alerts, document.scan(/^\| `(Oribi\w+)` \|/).flatten, "each alert has a line in doc/monitoring.md"
  end

  # The commands of the page, with this Prometheus in the place of Debian's.
  def follow_the_page(prometheus)
    steps = document[/^```sh\n(cp examples.*?)^```/m, 1]
    steps = steps.gsub("/etc/prometheus", prometheus.dir).gsub("127.0.0.1:9090", "127.0.0.1:#{prometheus.port}")
    reload = "sed -i 's/15s/200ms/; s/127.0.0.1:9394/#{@status}/' #{prometheus.config} && kill -HUP #{prometheus.pid}"
    assert_includes steps, "systemctl reload prometheus"
    *steps, look = steps.sub("systemctl reload prometheus", reload).lines(chomp: true)
    text, status = Open3.capture2e("sh", "-e", stdin_data: steps.join("\n"), chdir: E2E::ROOT)
    assert status.success?, text
    wait_until("a scrape; #{prometheus.log}") { `#{look}`.include?("oribi_generation") }
  end

  def alert(prometheus, name) = prometheus.query("ALERTS{alertname=\"#{name}\"}").keys.map { |labels| labels["alertstate"] }

  def test_a_prometheus_scrapes_and_evaluates
    wants_prometheus
    prometheus = E2E::Prometheus.new
    @status = "127.0.0.1:#{E2E.free_port}"
    one = start("--workers", "2", "--status", @status, "--control", @space.control, app: @space.app)
    40.times { assert_equal 200, one.get("/").status }
    follow_the_page(prometheus)
    wait_until("all requests") { prometheus.query('oribi_requests_total{method="GET"}').values == [40] }
    5.times { assert_equal 500, one.get("/raise").status }
    @space.break_app("told not to load")
    system(E2E::Server.binary, "ctl", "--control", @space.control, "reload", err: File::NULL)
    wait_until("an alert") { alert(prometheus, "OribiReloadFailed") == %w[firing] }
    wait_until("another") { alert(prometheus, "OribiErrors") == %w[pending] } # it wants to be true for 5 minutes
    wait_until("all rules to be evaluated") { prometheus.rules.none? { |rule| rule["health"] == "unknown" } }
    assert_equal example("oribi.rules.yml").scan(/(?:alert|record): \w/).size, prometheus.rules.size
    assert_empty prometheus.rules.reject { |rule| rule["health"] == "ok" }
    expressions.each do |expression|
      text = expression.gsub(/\$\w+/, self.class::VARIABLES)
      found = prometheus.query(text)
      refute_empty found, text unless text.include?("> 0") # nothing may be above
    end
    one.stop
    wait_until("the end to be seen") { alert(prometheus, "OribiDown") == %w[pending] }
  ensure
    prometheus&.cleanup
  end
end

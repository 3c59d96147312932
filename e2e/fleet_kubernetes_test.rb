# frozen_string_literal: true

require_relative "support"
require_relative "support/askers"
require "net/http"
require "open3"
require "yaml"

# examples/fleet/kubernetes.yaml: the API's own schemas take it, its numbers fit each other, and the server does what it
# asks for. There is no cluster here: the test does what kubelet does.
E2E.suite("fleet_kubernetes", transports: %i[tcp]) do
  const_set(:MODELS, File.join(E2E::ROOT, "build/bench/node_modules/kubernetes-models"))
  const_set(:CHECK, <<~JS)
    for (const object of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
      const model = require(`${process.argv[1]}/${object.apiVersion}/${object.kind}`)[object.kind];
      try { new model(object).validate(); console.log(`${object.kind}: valid`); } catch (error) { console.log(`${object.kind}: ${error.message}`); }
    }
  JS

  def text = File.read(File.join(E2E::ROOT, "examples/fleet/kubernetes.yaml"))
  def objects = @objects ||= YAML.load_stream(text)
  def object(kind) = objects.find { |one| one["kind"] == kind }
  def pod = object("Deployment")["spec"]["template"]
  def container = pod["spec"]["containers"].first
  def app = File.join(E2E::ROOT, "e2e/apps/restarts#{E2E.differing(:app_extension)}")

  # The manifest's options, for addresses of this machine, with the token that the cluster would put in.
  def arguments(port, status_port, drain: "2s")
    container["args"][0..-2].map do |word|
      word.sub("0.0.0.0:9292", "127.0.0.1:#{port}").sub("0.0.0.0:9394", "127.0.0.1:#{status_port}").sub("$(STATUS_TOKEN)", "secret").sub("15s", drain)
    end
  end

  def option(name)
    words = container["args"][0..-2].map { |word| word.sub("$(STATUS_TOKEN)", "secret") }
    @settings ||= IO.popen([E2E::Server.binary, *words, "--print-config", { err: %i[child out], chdir: E2E::ROOT }], &:read)
    @settings[/^#{name}(?: =)? ["']?(.*?)["';]*$/, 1] or flunk(@settings)
  end

  def validated(objects)
    skip "no node with kubernetes-models here (script/setup)" unless File.directory?(self.class::MODELS) && system("node", "--version", out: File::NULL)

    output, status = Open3.capture2e("node", "-e", self.class::CHECK, self.class::MODELS, stdin_data: JSON.generate(objects))
    assert_predicate status, :success?, output
    output.lines(chomp: true)
  end

  def test_the_schemas_of_the_api_take_it
    assert_equal objects.map { |one| "#{one["kind"]}: valid" }, validated(objects)
    object("Deployment")["spec"]["replicas"] = "three"
    assert_includes validated(objects), "Deployment: data/spec/replicas must be integer"
  end

  def test_the_numbers_agree
    ready = container["readinessProbe"]
    drain, shutdown = %w[drain_delay shutdown_timeout].map { |name| option(name).delete_suffix("s").to_i }
    assert_operator pod["spec"]["terminationGracePeriodSeconds"], :>, drain + shutdown
    assert_operator 2 * ((ready["periodSeconds"] * ready["failureThreshold"]) + 1), :<, drain, "as long again for the endpoint's removal to get about"
    assert_equal [option("health")] * 2, [ready, container["startupProbe"]].map { |probe| probe["httpGet"]["path"] }
    assert_equal %w[bind status].to_h { |name| [name, option(name)[/\d+\z/].to_i] }.values, container["ports"].map { |port| port["containerPort"] }
    assert_equal pod["metadata"]["annotations"]["prometheus.io/port"], option("status")[/\d+\z/]
    labels = pod["metadata"]["labels"]
    selectors = %w[Deployment PodDisruptionBudget].map { |kind| object(kind)["spec"]["selector"]["matchLabels"] }
    assert_equal [labels] * 3, [object("Service")["spec"]["selector"], *selectors]
    replicas = object("Deployment")["spec"]["replicas"]
    scaler = object("HorizontalPodAutoscaler")["spec"]
    scaled = [*scaler["scaleTargetRef"].values_at("kind", "name"), scaler["minReplicas"]]
    assert_equal ["Deployment", object("Deployment")["metadata"]["name"], replicas], scaled
    assert_operator object("PodDisruptionBudget")["spec"]["maxUnavailable"], :<, replicas
  end

  def adapter_rule = YAML.safe_load(object("ConfigMap")["data"]["config.yaml"])["rules"].first

  def metrics(port, fields = {}) = Net::HTTP.start("127.0.0.1", port) { |http| http.get("/metrics", fields) }

  def test_the_autoscaler_asks_for_what_there_is
    metric = object("HorizontalPodAutoscaler")["spec"]["metrics"].first["pods"]["metric"]["name"]
    assert_equal metric, adapter_rule["name"]["as"]
    status = E2E.free_port
    argv = [E2E::Server.binary, *arguments("%{port}", status), app]
    @servers << (server = E2E::Server.new(argv: argv).start)
    server.get("/")
    series = adapter_rule["seriesQuery"][/\A\w+/]
    wait_until("the call to be counted") do
      metrics(status, "Authorization" => "Bearer secret").body.match?(/^#{series}\{[^}]*le="[^"]+"[^}]*\} [1-9]/)
    end
    assert_equal "401", metrics(status).code
  end

  # TERM, the check turns red, and for a while requests come as before, until the endpoint's removal has got about.
  def test_a_pod_that_ends_loses_no_request
    drain = "#{[2 * E2E.patience, 6].min.ceil}s" # of a busy machine
    argv = [E2E::Server.binary, *arguments("%{port}", E2E.free_port, drain: drain), app]
    @servers << (server = E2E::Server.new(argv: argv).start)
    assert_equal 200, server.get(container["readinessProbe"]["httpGet"]["path"]).status
    askers = E2E::Askers.new(server.address, server.address)
    wait_until("answers") { askers.answered > 50 }
    server.signal(:TERM)
    wait_until("the check to turn red") { server.get("/up").status == 503 }
    red = E2E.clock
    wait_until("answers after the check is red") { askers.answered > 100 && E2E.clock > red + 0.5 }
    assert_empty askers.stop
    assert_operator askers.answered_since(red), :>, 5
    assert_equal 0, server.wait.exitstatus, server.stderr
  ensure
    askers&.stop
  end
end

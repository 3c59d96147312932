# frozen_string_literal: true

require_relative "../support"
require_relative "../support/workspace"
require_relative "webdriver"

# The page of the status listener in a real browser: rows and plots move under load, calls that last and stopped workers
# stand out, nothing that a client sends becomes markup, and the page says when the server is gone.
class StatusPageTest < Minitest::Test
  TOKEN = "a token of <b>some</b> length"
  PHONE = 360
  # Pixels of a plot that have a colour of their own, so neither text nor lines of the grid.
  INKED = <<~JS
    const plot = document.querySelectorAll("canvas")[arguments[0]];
    const { data } = plot.getContext("2d").getImageData(52 * devicePixelRatio, 0, plot.width, plot.height - 20 * devicePixelRatio);
    let inked = 0;
    for (let i = 0; i < data.length; i += 4)
      inked += data[i + 3] > 200 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60;
    return inked;
  JS

  def setup
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    @space = E2E::Workspace.new
    @address = "127.0.0.1:#{E2E.free_port}"
    @space.write_config({ status: @address, status_token: TOKEN })
    @server = E2E::Server.new(options: ["--config", @space.config, "--workers", "3"], app: @space.app).start
    @clients = []
  end

  def teardown
    @clients&.each(&:close)
    @server&.cleanup
    @space&.remove
  end

  def test_page
    E2E::Browser.open(width: 1100) do |browser|
      @browser = browser
      enter
      shows_load
      marks_calls_that_last
      makes_no_markup_of_targets
      fits_a_phone_and_the_dark
      shows_stopped_workers unless E2E.portable? # which has no sight of that
      tells_that_the_server_is_gone
      assert_empty(browser.console.reject { |line| line["message"].match?(/401|ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|willReadFrequently/) })
    end
  end

  private

  def script(...) = @browser.script(...)
  def see(what, words, selector) = E2E.wait_until(what) { script("return document.querySelector(arguments[0])?.textContent", selector).to_s.match?(words) }
  def rows = script("return [...document.querySelectorAll('#workers tr')].map((r) => [r.className, [...r.cells].map((c) => c.textContent)])")
  def get(path) = @server.get(path)

  def enter
    @browser.visit("http://#{@address}/")
    see("the question for the token", /token wanted/, "#state")
    assert_equal false, script("return location.href.includes('token')")
    idle_processors
    type_token("wrong")
    E2E.wait_until("the refusal") { script("return !document.querySelector('#wrong').hidden") }
    type_token(TOKEN)
    E2E.wait_until("three workers") { rows.size == 3 }
    refute script("return document.querySelector('#main').hidden")
    marks_differ
  end

  # Every sample says 0.7 % of a processor; and what is written left of each plot is kept, by its title.
  def idle_processors
    script(<<~JS)
      const asked = window.fetch, fill = CanvasRenderingContext2D.prototype.fillText;
      window.fetch = async (...all) => {
        const answer = await asked(...all);
        const body = await answer.clone().json().catch(() => ({}));
        if (!body.samples) return answer;
        const cpu = body.fields.indexOf("cpu_permille");
        body.samples.forEach((sample) => { sample[cpu] = 7; });
        return new Response(JSON.stringify(body));
      };
      window.marks = {};
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        const title = this.canvas.parentNode.querySelector("b").textContent;
        if (this.textBaseline === "middle") (window.marks[title] ||= []).push(text);
        return fill.call(this, text, ...place);
      };
    JS
  end

  def marks_differ
    marks = {}
    E2E.wait_until("the marks of the plots") do # what was fetched before may be drawn once more
      marks = script("return window.marks")
      marks.size == 8 && marks["CPU of all workers"].last(3) == ["10 %", "5 %", "0 %"]
    end
    assert_equal 3, marks["Answers per second"].last(3).uniq.size
  end

  def type_token(text)
    script("document.querySelector('#token').value = arguments[0]", text)
    @browser.click("#ask button")
  end

  def shows_load
    50.times { assert_equal 200, get("/").status }
    see("the requests", /50 requests/, "#about")
    E2E.wait_until("the rate in the plot") { script(INKED, 0).positive? }
    see("the classes", /2xx .*max [\d.]+/, "figcaption")
    assert_equal 50, rows.sum { |_, cells| cells[5].to_i }
  end

  def marks_calls_that_last
    @clients << E2E::Client.new(@server.address).tap { |client| client.request("GET", "/gate?%3Cb%3E&b='") }
    E2E.wait_until("the call") { rows.any? { |name, cells| name == "slow" && cells[1].include?("slow") && cells[2].include?("GET /gate?%3Cb%3E&b='") } }
  end

  # Whatever an answer says, it is text. The page asks by fetch, which is another's for a moment.
  def makes_no_markup_of_targets
    script(<<~JS)
      window.fetched = window.fetch;
      const evil = "<img src=x onerror='window.evil = 1'><script>window.evil = 2<\\/script>";
      window.fetch = async (path, ...more) => {
        const answer = await window.fetched(path, ...more);
        if (path !== "/status.json") return answer;
        const status = await answer.json();
        const worker = { ...status.processes[0], worker: 900, call_ms: 65000, call: "GET /" + evil, request_id: evil, state: evil, pid: evil };
        const stuck = { ...status.processes[0], worker: 901, call_ms: 1, call_overdue: true };
        return new Response(JSON.stringify({ ...status, program: evil, state: evil, version: evil, listeners: [evil], processes: [worker, stuck] }));
      };
    JS
    E2E.wait_until("what another says") { rows.any? { |name, cells| name == "stuck" && cells[2].include?("65 s GET /<img") } }
    assert(rows.any? { |name, cells| name == "stuck" && cells[1].include?("past its deadline") })
    assert(rows.any? { |name, cells| name == "ended" && cells[1] == "ended" })
    assert_equal [0, nil], script("return [document.images.length, window.evil]")
    script("window.fetch = window.fetched")
    see("the server again", /serving/, "#state")
  end

  def fits_a_phone_and_the_dark
    light = script("return getComputedStyle(document.body).backgroundColor")
    @browser.emulate(width: PHONE, dark: true)
    assert_equal [PHONE, PHONE], script("return [document.documentElement.scrollWidth, innerWidth]")
    refute_equal light, script("return getComputedStyle(document.body).backgroundColor")
    assert_equal "row", script("return document.querySelector('#workers tr').getAttribute('role')")
  end

  # No worker can answer anything; the supervisor can.
  def shows_stopped_workers
    pids = rows.map { |_, cells| cells[3].to_i }.uniq.select { |pid| @server.descendants.include?(pid) }
    assert_equal 3, pids.size
    pids.each { |pid| Process.kill(:STOP, pid) }
    E2E.wait_until("stopped workers") { rows.count { |name, cells| name == "stuck" && cells[1].include?("stopped by a signal") } == 3 }
    pids.each { |pid| Process.kill(:CONT, pid) }
  end

  def tells_that_the_server_is_gone
    @space.open_gate
    Process.kill(:QUIT, @server.pid)
    see("the page to say it", /does not answer: no connection.*Below is its state of/, "#trouble")
    assert_equal ["stale", false], script("return [document.body.className, document.querySelector('#main').hidden]")
    assert_operator rows.size, :>=, 3, "the last state stays"
  end
end

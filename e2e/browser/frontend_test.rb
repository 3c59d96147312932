# frozen_string_literal: true

require_relative "../support"
require_relative "../support/frontends"
require_relative "webdriver"

# Chromium and a frontend: one connection of HTTP/2 for all that a page asks for at once, bodies both ways, a stream
# that is given up, and a reload of the server that the page does not notice.
class FrontendBrowserTest < Minitest::Test
  include FrontendServers

  FETCHES = <<~JS
    const text = async (path, options) => { const answer = await fetch(path, options); return answer.status + ' ' + await answer.text(); };
    const pids = await Promise.all(Array.from({ length: 250 }, (_, i) => text('/pid?' + i)));
    const body = new Uint8Array(300000).fill(120);
    const digest = await text('/digest', { method: 'POST', body });
    const big = await text('/big?size=3000000');
    const leaves = new AbortController();
    const flood = await fetch('/flood?count=1000', { signal: leaves.signal });
    await flood.body.getReader().read();
    leaves.abort();
    const form = new FormData();
    form.append('nick', 'n');
    form.append('file', new Blob([body]), 'f.bin');
    const upload = await text('/upload', { method: 'POST', body: form });
    const protocols = new Set(performance.getEntriesByType('resource').map((entry) => entry.nextHopProtocol));
    return [pids.filter((pid) => pid.startsWith('200 ')).length, digest, big.length, upload, [...protocols]];
  JS
  SUM = Digest::SHA256.hexdigest("x" * 300_000).freeze

  def wait_until(...) = E2E.wait_until(...)

  def test_a_page_over_http2
    skip "no chromedriver here" unless system("command -v chromedriver >/dev/null")
    serve
    E2E::Browser.open(flags: %w[--ignore-certificate-errors]) do |browser|
      browser.visit("https://127.0.0.1:#{@one.port}/")
      2.times do
        assert_equal [250, "200 300000 300000 #{SUM}", 3_000_004, "200 n f.bin 300000 #{SUM}", %w[h2]], browser.script("return (async () => {#{FETCHES}})()")
        output, status = ctl("reload")
        assert status.success?, output
      end
      assert_empty browser.console.reject { |line| line["message"].include?("favicon") }
    end
    refute_match(/error|failed/, @one.stderr)
  end
end

# frozen_string_literal: true

require_relative "support"
require_relative "support/askers"
require_relative "support/haproxy"

# A real HAProxy that asks for `health`: it leaves a server that drains, and never sees a reload.
E2E.suite("haproxy", transports: %i[tcp]) do
  include E2E::HAProxy

  const_set(:CONFIG, <<~TEXT)
    defaults
        mode http
        timeout connect 5s
        timeout client 30s
        timeout server 30s
        retries 0
    frontend front
        bind 127.0.0.1:%d
        default_backend back
    backend back
        timeout check 5s # else 100 ms, which a loaded machine takes for an answer
        option httpchk GET /up
        http-check expect status 200
        server one 127.0.0.1:%d check inter 100ms fall 2 rise 1
        server two 127.0.0.1:%d check inter 100ms fall 2 rise 1
  TEXT

  def log = File.read("#{@dir}/log")
  def test_no_request_is_lost_when_servers_reload_and_one_ends
    servers = Array.new(2) { start("--workers", "2", "--health", "/up", "--drain-delay", "3s") }
    port = E2E.free_port
    front = run_haproxy(format(self.class::CONFIG, port, *servers.map(&:port)), port)
    askers = E2E::Askers.new(front)
    servers.each { |one| wait_until("all workers") { one.stderr.include?("listening on") } }
    servers.each { |one| one.signal(:HUP) }
    servers.each { |one| wait_until("a reload: #{one.stderr}") { one.stderr.include?("reload done") } }
    before = askers.answered
    wait_until("answers after the reload") { askers.answered > before + 50 }
    refute_match(/DOWN/, log)
    servers.first.signal(:TERM)
    servers.first.wait
    assert_match(%r{Server back/one is DOWN, reason: Layer7 wrong status, code: 503}, log)
    before = askers.answered
    wait_until("answers of the other one") { askers.answered > before + 50 }
    assert_empty askers.stop
    refute_match(%r{back/two is DOWN}, log)
  end
end

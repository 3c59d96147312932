# frozen_string_literal: true

require_relative "support"

# Workers that are replaced while the server goes on: their calls may last longer than a stop would let them. A stop
# kills 1.1 seconds after it has told a worker to end; here gates open later.
E2E.suite("replaced", transports: [*E2E::EITHER, :frontend].uniq) do
  def serve(*options) = start("--shutdown-timeout", "100ms", "--call-timeout", "1h", *options)

  def pid_of(one, name) = Integer(File.read("#{one.dir}/#{name}.entered"))

  # Enters a gate, and goes on when another worker serves.
  def recycled(one, name)
    client = enter_gate(one, name)
    wait_until("another worker: #{one.stderr}") { one.worker_pid != pid_of(one, name) }
    client
  end

  # Likewise; what is asked before may wait behind the call.
  def replaced(one, name, signal, words)
    client = enter_gate(one, name)
    one.signal(signal)
    wait_until("#{words}: #{one.stderr}") { one.stderr.include?(words) }
    client
  end

  def reloaded(one) = replaced(one, "reload", :HUP, "reload done")
  def upgraded(one) = replaced(one, "upgrade", :USR2, "has taken over")

  def assert_finishes(one, clients)
    later = E2E.clock + 2
    wait_until("the time of a stop to be over") { E2E.clock > later }
    open_gate(one, *clients.keys)
    clients.each do |name, client|
      assert_equal "gate passed", client.read_response.body
      wait_until("the worker of #{name} to end") { !E2E::Processes.alive?(pid_of(one, name)) }
    end
    refute_match(/did not end|reached/, one.stderr)
  end

  def test_a_reload_and_an_upgrade_wait_for_calls
    one = serve
    assert_finishes(one, { "reload" => reloaded(one), "upgrade" => upgraded(one) })
    assert_equal 0, one.wait.exitstatus
  end

  def test_age_max_waits_for_calls
    one = serve("--age-max", "1s")
    assert_finishes(one, { "old" => recycled(one, "old") })
  end

  if E2E::RUBY
    def test_workers_of_several_threads_wait_for_calls
      one = serve("--threads", "2", "--requests-max", "1")
      assert_finishes(one, { "last" => recycled(one, "last") })
    end

    def test_a_reload_and_an_upgrade_wait_for_calls_of_several_threads
      one = serve("--threads", "2")
      assert_finishes(one, { "reload" => reloaded(one), "upgrade" => upgraded(one) })
      assert_equal 0, one.wait.exitstatus
    end
  end

  def test_a_stop_cuts_calls_of_workers_that_were_replaced
    one = serve
    client = reloaded(one)
    one.signal(:TERM)
    assert_equal 0, one.wait.exitstatus
    refute_includes client.read_to_end, "gate passed"
    assert_match(/pid #{pid_of(one, "reload")}\) did not end within shutdown_timeout: killed/, one.stderr)
  end
end

# frozen_string_literal: true

require_relative "support"

# What is said with a number or a length is exactly so: requests of a worker under load, bodies from files whose size is
# not their length.
E2E.suite("exact", transports: %i[tcp]) do
  include E2E::Home

  CLIENTS = 8
  EACH = 40

  # Each answer is the worker's pid; many requests are complete at the same time.
  def test_no_worker_answers_more_than_requests_max
    app = file("app#{E2E.differing(:app_extension)}", E2E::RUBY ? "run ->(_) { [200, {}, [$$.to_s]] }" : "sub { [200, [], [\"$$\"]] }")
    one = start("--workers", "2", "--requests-max", "7", app: app)
    pids = Array.new(CLIENTS) { Thread.new { ask(one) } }.flat_map(&:value)
    assert_equal CLIENTS * EACH, pids.size
    assert_operator pids.tally.values.max, :<=, 7
    assert_operator pids.uniq.size, :>=, CLIENTS * EACH / 7
  end

  # A worker that ends closes its connections; a request that it has not begun is sent again on another one.
  def ask(one)
    pids = []
    client = nil
    until pids.size == EACH
      client ||= connect(one)
      answer = client.send_raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n").read_response
      pids << answer.body
      client = client.close && nil if answer.close?
    end
    pids
  end

  FILES = %w[/proc/version /proc/self/status /proc/filesystems /sys/kernel/mm/transparent_hugepage/enabled].freeze

  def test_bodies_of_files_whose_size_is_not_their_length
    names = FILES.select { |name| File.readable?(name) }
    skip "there is no /proc here" if names.empty?
    app = E2E::RUBY ? 'run ->(env) { [200, {}, File.open(env["PATH_INFO"])] }' : 'sub { open my $in, "<", $_[0]{PATH_INFO} or die; [200, [], $in] }'
    one = start(app: file("app#{E2E.differing(:app_extension)}", app))
    names.each do |name|
      body = connect(one).send_raw("GET #{name} HTTP/1.1\r\nHost: a\r\n\r\n").read_response.body
      next assert_match(/^Pid:\s+\d+$.*\n\z/m, body, name) if name.end_with?("status")

      assert_equal File.read(name), body, name
    end
  end
end

# frozen_string_literal: true

# bench/crowd --sockets in small: two frontends, two drivers; each message reaches each socket once. No figure is looked
# at.
require "minitest/autorun"
require_relative "../lib/socket_crowd"

class BenchCrowdTest < Minitest::Test
  COUNT = 201 # the drivers have not the same share

  { "oribi" => false, "oribi-psgi" => true }.each do |command, tls|
    define_method("test_sockets_of_#{command.tr("-", "_")}") do
      shares = []
      found = Bench::SocketCrowd.new(COUNT, command: command, tls: tls, frontends: 2, drivers: 2, silence_s: 0, progress: ->(share, _) { shares << share }).run
      assert_equal [2, 2], found.values_at(:frontends, :drivers)
      assert_equal [COUNT * found[:published], 0, 0, 0], found.values_at(:delivered, :lost, :doubled, :ended), found.inspect
      assert_equal shares.sort, shares
      assert_operator shares.last, :<, 1
    end
  end

  def test_more_than_the_memory_allows
    error = assert_raises(Bench::SocketCrowd::Failed) { Bench::SocketCrowd.new(1_000_000_000, command: "oribi").run }
    assert_includes error.message, "memory"
  end
end

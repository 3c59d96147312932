# frozen_string_literal: true

require_relative "support"
require_relative "support/frontends"

# Behind a frontend the socket of an application is a channel, which carries the requests of many clients. An
# application that keeps a handle of it (psgix.io, rack.hijack) neither reads nor writes what is another client's.
E2E.suite("frontend_lent", transports: %i[tcp]) do
  include FrontendServers

  APP = "e2e/apps/lent.#{E2E::RUBY ? "ru" : "psgi"}"

  def check(way, scheme, *words)
    assert_equal "kept", curl("/#{way}", *words, scheme: scheme)
    3.times { assert_equal "mine", curl("/forge", *words, scheme: scheme) }
    assert_equal " ended", curl("/rest", *words, scheme: scheme), "the frontend has closed the channel, and nothing came on it"
  end

  %w[looked taken].each do |way|
    %w[--http1.1 --http2].each do |flag|
      define_method(:"test_a_socket_that_is_#{way}_behind_tls_#{flag.delete("-.")}") do
        serve("--workers", "1", app: APP)
        check(way, "https", flag)
      end
    end

    { "--http1.1" => "http11", "--http2-prior-knowledge" => "h2c" }.each do |flag, name|
      define_method(:"test_a_socket_that_is_#{way}_behind_a_frontend_without_tls_#{name}") do
        serve("--workers", "1", address: FrontendServers::PLAIN_ADDRESS, app: APP)
        check(way, "http", flag)
      end
    end
  end
end

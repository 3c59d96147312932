# frozen_string_literal: true

require_relative "lib/oribi/redis/version"

Gem::Specification.new do |spec|
  spec.name = "oribi-redis"
  spec.version = Oribi::Redis::VERSION
  spec.summary = "Client of Redis that never gives a wrong answer, and a driver for redis-client"
  spec.description = "RESP2 and RESP3 in C; pipelines, commands whose replies nobody waits for, transactions, scripts, subscriptions; " \
                     "a connection that saw a time limit, an interrupt or a fork is never used again."
  spec.authors = ["The Oribi authors"]
  spec.license = "MIT"
  spec.homepage = ENV.fetch("ORIBI_REPOSITORY", "").delete_suffix(".git").then { |url| url.empty? ? nil : url }
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir["lib/**/*.rb", "ext/**/*.{c,h,rb,sh}", "ext/**/Makefile", "README.md", "LICENSE"]
  spec.extensions = ["ext/oribi_redis/extconf.rb"]
  spec.metadata["rubygems_mfa_required"] = "true"
end

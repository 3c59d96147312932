# frozen_string_literal: true

require "support"

# Some values of the environment are the same objects, or share their bytes, from one request to the next. Whatever a
# request does to one of them, and keeps of it, the next finds them as the first one did. rack.errors is the process's
# $stderr, and so not among them.
class LentTest < BindingTest
  SECRET = "a secret of another request"
  OURS = %w[rack.input rack.hijack rack.early_hints rack.response_finished oribi.extend_deadline].freeze

  # What a request does; what the next does with what was kept, before it is looked at.
  CASES = {
    "instance variables" => [->(env) { each_object(env) { |value| value.instance_variable_set(:@secret, SECRET) } }],
    "singleton methods" => [->(env) { each_object(env) { |value| value.define_singleton_method(:secret) { SECRET } } }],
    "modules" => [->(env) { each_object(env) { |value| value.extend(Comparable) } }],
    "frozen values" => [->(env) { env.each_value(&:freeze) }],
    "a frozen environment" => [->(env) { env.freeze }],
    "strings changed in place" => [->(env) { each_string(env) { |value| value << SECRET } }],
    "bytes changed in place" => [->(env) { each_string(env) { |value| value.setbyte(0, 33) unless value.empty? } }],
    "encodings" => [->(env) { each_string(env) { |value| value.force_encoding("UTF-16LE") } }],
    "strings emptied" => [->(env) { each_string(env, &:clear) }],
    "strings replaced" => [->(env) { each_string(env) { |value| value.replace(SECRET) } }],
    "strings kept" => [->(env) { env.values.grep(String) }, ->(kept) { kept.each { |value| value << SECRET unless value.frozen? } }],
    "substrings kept" => [->(env) { env.values.grep(String).map { |value| value[0, 40] } },
                          ->(kept) { kept.each { |value| value.setbyte(0, 33) unless value.empty? } }],
    "objects kept" => [->(env) { OURS.map { |key| env[key] }.compact },
                       ->(kept) { kept.each { |value| value.instance_variable_set(:@secret, SECRET) unless value.frozen? } }],
    "arrays changed" => [->(env) { each_object(env) { |value| value << ->(*) {} if value.is_a?(Array) } }],
    "the array of callbacks kept" => [->(env) { env["rack.response_finished"] }, ->(kept) { kept << -> {} unless kept.frozen? }],
    "the input closed" => [->(env) { env["rack.input"].close }],
    "keys removed" => [->(env) { env.clear }],
    "a default" => [->(env) { env.default = SECRET }],
    "keys compared by identity" => [->(env) { env.compare_by_identity }],
    "the environment kept" => [->(env) { env }, ->(kept) { kept.each_value { |value| value << SECRET if value.is_a?(String) && !value.frozen? } }]
  }.freeze

  def self.each_object(env, &block) = OURS.each { |key| block.call(env[key]) if env[key] && !env[key].frozen? }

  def self.each_string(env, &block) = env.each_value { |value| block.call(value) if value.is_a?(String) && !value.frozen? }

  AGENT = { "User-Agent" => "an agent with a name of more than 24 bytes", "Accept" => "text/html", "X-Own-Field" => "own", "Cookie" => "a=#{"b" * 40}" }.freeze

  CASES.each do |name, (act, later)|
    define_method("test_#{name.tr(" ", "_")}_are_not_seen_by_the_next_request") do
      kept = nil
      app = lambda do |env|
        if env["QUERY_STRING"] == "act"
          kept = self.class.instance_exec(env, &act)
        else
          later&.call(kept) if kept
        end
        text(env["QUERY_STRING"] == "look" ? [state_of(env)] : ["done"])
      end
      serve(app, lint: false, early_hints: true) do |client|
        first = client.get("/?look", AGENT).body
        20.times do # long values are shared from a 16th request on
          assert_equal "done", client.get("/?act", AGENT).body
          assert_equal first, client.get("/?look", AGENT).body
        end
      end
    end
  end

  # All that can be seen, as text; what differs between two requests by its nature left out.
  def state_of(env)
    values = env.except("oribi.queue_us", "rack.errors").map do |key, value|
      shown = value.is_a?(String) || value.is_a?(Array) ? value.inspect : value.class
      added = [value.instance_variables, value.singleton_methods - [:inspect], value.singleton_class.include?(Comparable)]
      [key, shown, (value.encoding if value.is_a?(String)), value.frozen?, added].inspect
    rescue TypeError # has no singleton class
      [key, shown].inspect
    end
    [values.sort, env.default.inspect, env.compare_by_identity?, env.frozen?, env.class, env["rack.input"].read.inspect].join("\n")
  end
end

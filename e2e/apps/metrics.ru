# frozen_string_literal: true

# Changes metrics of its own wherever an application can; metrics.psgi is its twin.
ANSWERS = Oribi.counter(:shop_answers_total, "Answers", labels: [:path])
TIMES = Oribi.histogram(:shop_times_seconds, "Times", buckets: [0.1, 1])
HELD = Oribi.gauge(:shop_held, "Held by workers", aggregate: :sum)
USERS = Oribi.gauge(:shop_users, "Users \"now\"")
BOUND = ANSWERS.with(path: "/")
Oribi.counter(:shop_loads, "Loads").increment(by: 0.5)

run lambda { |env|
  path = env["PATH_INFO"]
  case path
  when "/hold"
    HELD.set(2)
    HELD.increment
  when "/fork"
    Process.wait(fork { 5.times { BOUND.increment } && exit!(0) })
  when "/lazy"
    lazy = Oribi.counter(:shop_lazy, "Declared in a call", labels: [:n])
    env["QUERY_STRING"].to_i.times { |i| lazy.increment(labels: { n: "#{i}\"\\\n\xFF" }) }
  when "/otherwise"
    begin
      Oribi.gauge(:shop_answers, "Otherwise")
    rescue ArgumentError => e
      next [200, {}, [e.message]]
    end
  when "/"
    BOUND.increment
    TIMES.observe(0.5)
    USERS.increment
  else
    ANSWERS.increment(labels: { path: path })
  end
  [200, {}, [Process.pid.to_s]]
}

# frozen_string_literal: true

# Calls of chosen durations, and some that do not end; placement.psgi is its twin.
HEADERS = { "content-type" => "text/plain" }.freeze

def answer(text, headers = {}) = [200, HEADERS.merge(headers), [text.to_s]]

# What the load driver takes off an answer's time to know how long the request has waited, and when the call began.
def timed
  started = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
  yield
  took = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond) - started
  answer("done", "x-service-us" => took.to_s, "x-begun-us" => started.to_s)
end

# Lives until the test says so, holding whatever it has inherited.
def fork_child
  fork do
    IO.select(nil, nil, nil, 0.01) until File.exist?(File.join(ENV.fetch("E2E_DIR"), "child.stop"))
    exit!
  end
end

# Computes for so long of the processor's time, not of the clock's: a busy machine makes it no shorter.
def compute(seconds)
  until_s = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
  nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < until_s
end

run lambda { |env|
  path, number = env["PATH_INFO"][1..].split("/")
  case path
  when "exp" then timed { sleep(-Math.log(1 - rand) * number.to_f / 1000) }
  when "sleep" then timed { sleep(number.to_f / 1000) }
  when "compute" then timed { compute(number.to_f / 1000) }
  when "spin" then loop {}
  # Half an hour in a function of the C library's, with the VM's lock held.
  when "stuck" then answer("password".crypt("$6$rounds=999999999$salt$"))
  # Raised it is, and held back.
  when "deaf" then Thread.handle_interrupt(Exception => :never) { loop {} }
  when "rescue"
    begin
      sleep
    rescue Oribi::CallTimeout => e
      answer(e.class)
    end
  when "part" then [200, HEADERS, Enumerator.new { |out| out << "begun\n"; sleep }]
  when "extend"
    env["oribi.extend_deadline"].call(number.to_f)
    sleep(1)
    answer("extended")
  when "fork" then answer(fork_child)
  else answer(Process.pid)
  end
}

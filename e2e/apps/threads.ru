# frozen_string_literal: true

# Who calls, and calls that are over their deadline, in ways that differ in what other threads can do meanwhile.
TEXT = { "content-type" => "text/plain" }.freeze

def answer(text) = [200, TEXT, [text.to_s]]

run lambda { |env|
  path, number = env["PATH_INFO"][1..].split("/")
  case path
  when "sleep" then sleep(number.to_f / 1000)
  when "spin" then loop {}
  when "compute" # Ruby's lock is kept
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    nil until Process.clock_gettime(Process::CLOCK_MONOTONIC) - began > number.to_f / 1000
  when "name" then next answer(Thread.current.name)
  when "deaf" then Thread.handle_interrupt(Exception => :never) { sleep }
  # Half an hour in a function of the C library's, with the VM's lock held.
  when "stuck" then "password".crypt("$6$rounds=999999999$salt$")
  when "patient"
    env["oribi.extend_deadline"].call(20)
    env["rack.errors"].puts("patient")
    sleep(number.to_f / 1000)
    next answer("patient")
  end
  answer(Process.pid)
}

# frozen_string_literal: true

# Calls that take long for reasons that differ, and code that runs after the answer; deadlines.psgi is its twin.
TEXT = { "content-type" => "text/plain" }.freeze

def answer(text) = [200, TEXT, [text.to_s]]

# A body that is done, and what else the application does when it is closed.
class Closing
  def initialize(&block) = @block = block
  def each = yield("answered")
  def close = @block.call
end

# Half an hour in a function of the C library's, with the VM's lock held.
def stuck = "password".crypt("$6$rounds=999999999$salt$")

def nap(seconds) = sleep(seconds)

def trickle(count) = Enumerator.new { |out| count.times { out << "."; sleep(0.05) } }
def flood(mib) = Enumerator.new { |out| mib.times { out << "x" * 1_048_576 } }

def say(env, text) = env["rack.errors"].puts(text)

# A call that is held back from within, in so many calls: a trace shows the innermost.
def deep(count, &block) = count.zero? ? block.call : deep(count - 1, &block)

# The same function of the C library's, without the VM's lock; no signal ends it.
def stuck_without_lock
  require "fiddle"
  crypt = Fiddle::Function.new(Fiddle.dlopen("libcrypt.so.1")["crypt"], [Fiddle::TYPE_VOIDP] * 2, Fiddle::TYPE_VOIDP, need_gvl: false)
  crypt.call("password", "$6$rounds=999999999$salt$")
end

def held_back = Thread.handle_interrupt(Exception => :never) { loop {} }
def spin = loop {}
def block_on_a_pipe = IO.pipe.first.read
def block_in_select = IO.select([IO.pipe.first])
def block_in_sleep = sleep

run lambda { |env|
  path, number = env["PATH_INFO"][1..].split("/")
  case path
  when "trickle" then [200, TEXT, trickle(number.to_i)]
  when "flood" then [200, TEXT, flood(number.to_i)]
  when "slow-close" then [200, TEXT, Closing.new { nap(20) }]
  when "stuck-close" then [200, TEXT, Closing.new { stuck }]
  when "patient-close" then [200, TEXT, Closing.new { env["oribi.extend_deadline"].call(20); nap(2); say(env, "closed") }]
  when "slow-finish"
    env["rack.response_finished"] << ->(*) { nap(20) }
    answer("answered")
  when "slow-hijack"
    io = env["rack.hijack"].call
    io.write("HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 8\r\nConnection: close\r\n\r\nanswered")
    io.close
    nap(20)
  when "goes-on" # after the end of its answer
    [200, TEXT, ->(stream) { stream.write("answered"); stream.close; nap(20) }]
  when "stuck" then answer(stuck)
  when "without-lock" then answer(stuck_without_lock)
  when "held-back" then answer(held_back)
  when "deep" then answer(deep(100) { stuck })
  when "spin" then answer(spin)
  when "read" then answer(block_on_a_pipe)
  when "select" then answer(block_in_select)
  when "sleep" then answer(block_in_sleep)
  when "caught"
    begin
      sleep
    rescue Oribi::CallTimeout
      [503, TEXT, ["sorry"]]
    end
  when "thread-extends"
    Thread.new { env["oribi.extend_deadline"].call(20) }.join
    nap(2)
    answer("extended")
  else answer(Process.pid)
  end
}

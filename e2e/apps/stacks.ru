# frozen_string_literal: true

# Calls that stand somewhere until GATE (a file) is there, and count what was cut short meanwhile; stacks.psgi is its
# twin.
require "fiddle"
require "io/nonblock"
require "socket"

PIECE = 0.3
TEXT = ("x" * 20).freeze
LIBC = Fiddle.dlopen(nil)
# With the VM's lock held, as in a driver in C that knows nothing of the VM.
RECV = Fiddle::Function.new(LIBC["recv"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_INT], Fiddle::TYPE_SSIZE_T, need_gvl: true)

def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def open? = File.exist?(ENV.fetch("GATE"))

# So many waits have ended too soon.
def in_pieces
  short = 0
  until open?
    before = clock
    yield
    short += 1 if clock - before < PIECE
  end
  "#{short} cut short"
end

def spin = (nil until open?)
def match = (TEXT.match?(/^(x+x+)+\1y/) until open?)
def digest = ("password".crypt("$6$rounds=20000$salt$") until open?)
def nap = in_pieces { sleep(PIECE) }
def choose = in_pieces { IO.select([IO.pipe.first], nil, nil, PIECE) }

def receive
  UNIXSocket.open(ENV.fetch("PEER")) do |socket|
    socket.nonblock = false
    buffer = Fiddle::Pointer.malloc(16, Fiddle::RUBY_FREE)
    n = RECV.call(socket.fileno, buffer, 16, 0)
    n.negative? ? "failed: #{Fiddle.last_error}" : buffer[0, n]
  end
end

def stream(out)
  out.write("begun ")
  nap
  out.write("ended")
  out.close
end

run lambda { |env|
  name = env["PATH_INFO"].delete_prefix("/")
  text = { "content-type" => "text/plain" }
  next [200, text, ->(out) { stream(out) }] if name == "stream"

  known = %w[spin match digest nap choose receive].include?(name)
  [200, text, [known ? "done #{send(name)}" : "here"]]
}

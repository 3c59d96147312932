# frozen_string_literal: true

# Calls that handle signals themselves, for a while or for good; signals.psgi is its twin.
TEXT = { "content-type" => "text/plain" }.freeze
SEEN = [] # rubocop:disable Style/MutableConstant -- filled by handlers

def answer(text) = [200, TEXT, [text.to_s]]

# Says that it was entered, and waits until the test opens the gate.
def gate(name)
  file = File.join(ENV.fetch("E2E_DIR"), name)
  File.write("#{file}.entered", Process.pid.to_s)
  sleep(0.005) until File.exist?("#{file}.open")
end

HANDLERS = { "handler" => ->(number) { SEEN << Signal.signame(number) }, "ignore" => "IGNORE" }.freeze

run lambda { |env|
  path, signal, kind, name = env["PATH_INFO"][1..].split("/")
  case path
  when "local" # as a library does it that puts back what was there
    old = trap(signal, HANDLERS.fetch(kind))
    begin
      gate(name) if name
    ensure
      trap(signal, old)
    end
    answer("passed")
  when "set"
    trap(signal, HANDLERS.fetch(kind))
    gate(name) if name
    answer("passed")
  when "gate"
    gate(signal)
    answer("passed")
  when "previous" # what a library finds that calls the handler before its own, or puts it back
    old = trap(signal) {}
    trap(signal, old)
    answer(old.class)
  when "note" # each signal in a file
    notes = File.open(File.join(ENV.fetch("E2E_DIR"), "notes"), "a")
    trap(signal) { notes.syswrite(".") }
    answer(Process.pid)
  when "child"
    reader, writer = IO.pipe
    child = fork { writer.write("."); sleep }
    reader.read(1)
    Process.kill(signal, child)
    answer(Process.wait2(child).last.inspect)
  when "seen" then answer(SEEN.uniq.join(","))
  else answer(Process.pid)
  end
}

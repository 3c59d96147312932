# frozen_string_literal: true

# Handlers that do odd things, for socket_oddities_test.rb: a message is a command.
module Odd
  DIR = ENV.fetch("E2E_DIR")

  # An exception that says of itself that it is none.
  class Failure < StandardError
    def nil? = true
    def ! = true
    def ==(_other) = raise("not to be compared")
  end

  # For a Perl handler that assigns to its arguments.
  module Assigning
    def self.on_open(ws) = ws.state["opened"] = "opened"
    def self.on_message(ws, _data) = ws.send(ws.state["opened"])
    def self.on_close(ws, _code, _reason) = ws.publish("c", "assigned")
  end

  module_function

  def on_message(ws, data)
    word, rest = data.split(" ", 2)
    case word
    when "nil" then nil
    when "false" then false
    when "throw" then throw :nowhere
    when "raise-empty" then raise ""
    when "raise-nul" then raise "a\0b"
    when "throw-false", "throw-odd" then raise Failure
    when "inf" then ws.state["inf"] = Float::INFINITY
    when "text" then ws.state["text"] = "\xed\xa0\x80"
    when "array" then ws.state = [1]
    when "string" then ws.state = "text"
    when "reason" then ws.close(4000, "\u00fc".encode("UTF-16LE"))
    when "kept" then ws.send(ws.env["inf"].size.to_s)
    when "exit!" then exit!(0)
    when "interrupt" then raise Interrupt
    when "fork" then Process.wait(fork { exit!(0) })
    when "fork-returns" then return_in_a_child(ws)
    when "late" then ws.send("early").then { ws.close(4000, "bye") }.then { ws.send("late") }
    when "twice" then ws.close(4000, "one").then { ws.close(4001, "two") }
    when "after-subscribe" then ws.close(4000, "bye").then { ws.subscribe("c") }.then { ws.publish("c", "from a closed one") }
    when "many" then ws.subscribe("c").then { rest.to_i.times { |i| ws.publish("c", i.to_s) } }
    when "keep" then keep(ws)
    when "use" then use
    when "thread" then Thread.new { ws.send("from a thread") }.join
    when "state" then ws.state = rest == "nil" ? nil : { rest => Object }
    when "deep" then ws.state["deep"] = deep(rest.to_i)
    when "hang" then sleep
    when "argument" then argument(ws)
    when "publish" then Oribi.publish("c", rest).then { ws.send("published") }
    when "ask" then ws.send(rest)
    end
  end

  def on_close(ws, code, _reason)
    ws.subscribe("c")
    ws.send("nobody")
    ws.close(4000)
    ws.publish("c", "closed #{code}")
  end

  # Both processes come back from the handler.
  def return_in_a_child(ws)
    pid = fork
    ws.send(pid ? "the parent" : "a child")
  end

  def keep(ws) = @kept = ws

  def use
    @kept.send("of another call")
  rescue Oribi::Error => e
    File.write("#{DIR}/used", e.message)
  end

  def argument(ws)
    ws.subscribe("c", since: Class.new { def to_s = 5 }.new)
  rescue TypeError => e
    ws.send(e.class.name)
  end

  def deep(n) = n.zero? ? 1 : [deep(n - 1)]
end

run(lambda do |env|
  return [200, {}, [Process.pid.to_s]] if env["PATH_INFO"] == "/pid"

  ws = env["oribi.websocket"] or return [200, {}, ["Hello, World!"]]
  case env["PATH_INFO"]
  when "/twice"
    ws.accept(Odd, channels: ["a"])
    ws.accept(Odd, channels: ["c"])
  when "/thread" then Thread.new { ws.accept(Odd, channels: ["c"]) }.value
  when "/too-large" then ws.accept(Odd).tap { (ws.accept(Odd, state: { "x" => "x" * 4096 }) rescue next) }
  when "/lengths" then ws.accept(Odd, headers: { "content-length" => "5", "transfer-encoding" => "chunked", "x-more" => "more" })
  when "/and-raises" then ws.accept(Odd).then { raise "after accept" }
  when "/and-refuses" then ws.accept(Odd).then { [403, {}, ["refused\n"]] }
  when "/nothing" then ws.accept(Odd) && nil
  when "/assigns" then ws.accept(Odd::Assigning)
  when "/infinite" then ws.accept(Odd, state: { "inf" => Float::INFINITY })
  when "/array" then ws.accept(Odd, state: [1])
  when "/keeps" then ws.accept(Odd, keep: (env["inf"] = "Inf") && ["inf"])
  when "/alone" then ws.accept(Odd)
  when "/forged" then [101, {}, []]
  else ws.accept(Odd, channels: ["c"])
  end
end)

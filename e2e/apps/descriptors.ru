# frozen_string_literal: true

require "fiddle"

# An application that does with descriptors what libraries do that believe to be alone in their process;
# descriptors.psgi is its twin. Ruby itself never closes 0 to 2, the C library does.
module DescriptorsApp
  INT = Fiddle::TYPE_INT
  CLOSE = Fiddle::Function.new(Fiddle.dlopen(nil)["close"], [INT], INT)
  DUP2 = Fiddle::Function.new(Fiddle.dlopen(nil)["dup2"], [INT, INT], INT)
  TEXT = { "content-type" => "text/plain" }.freeze

  def self.range(request) = Range.new(*%w[from to].map { |name| Integer(request.params[name]) })

  # ?from=3&to=200: closes them all, whoever they belong to.
  def self.close(request) = range(request).count { |fd| CLOSE.call(fd).zero? }

  # The same, and something of the application's gets each number that was taken.
  def self.occupy(request)
    @file = File.open(request.params["path"], "a")
    fds = range(request).select { |fd| fd != @file.fileno && File.exist?("/proc/self/fd/#{fd}") }
    fds.each { |fd| DUP2.call(@file.fileno, fd) }
    fds.size
  end

  def self.call(env)
    request = Rack::Request.new(env)
    body = case env["PATH_INFO"]
           when "/pid" then Process.pid
           when "/close" then close(request)
           when "/occupy" then occupy(request)
           when "/slow-close" then close(request).tap { IO.select(nil, nil, nil, Float(request.params["seconds"])) }
           when "/raise" then raise "told to fail"
           else "Hello, World!"
           end
    [200, TEXT, [body.to_s]]
  end
end

run DescriptorsApp

# frozen_string_literal: true

require "io/wait"

# Keeps its clients' sockets, and writes there while it answers others; lent.psgi is its twin.
KEPT = [] # rubocop:disable Style/MutableConstant

def answer(text) = [200, { "content-type" => "text/plain" }, [text]]

def whole(text) = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: #{text.bytesize}\r\n\r\n#{text}"

# The application answers by itself, and keeps the socket.
def take(env)
  KEPT << env["rack.hijack"].call
  KEPT.last.write(whole("kept"))
  answer("not sent")
end

def forge
  KEPT.each do |io|
    io.write(whole("forged"))
  rescue SystemCallError
    nil # the other side has closed
  end
  answer("mine")
end

# What else came on the sockets, until they are at their end.
def rest
  text = +""
  KEPT.each do |io|
    loop do
      return answer("#{text} open") unless io.wait_readable(10)

      text << io.read_nonblock(4096)
    rescue EOFError, Errno::ECONNRESET
      break
    end
  end
  KEPT.clear
  answer("#{text} ended")
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/looked", "/taken" then take(env)
  when "/forge" then forge
  else rest
  end
}

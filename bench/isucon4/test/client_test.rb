# frozen_string_literal: true

require "minitest/autorun"
require "socket"
require_relative "../tools"

# The driver's HTTP client against answers of every shape, by its smallest scenario.
class ClientTest < Minitest::Test
  HELLO = "Hello, World!"
  PATIENCE_S = 20

  # Answers each request with these pieces, a write each; nil ends the connection.
  def serve(*pieces)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      loop { Thread.new(server.accept) { |socket| talk(socket, pieces) } }
    rescue IOError
      nil
    end
    thread.report_on_exception = false
    yield "127.0.0.1:#{server.addr[1]}"
  ensure
    server.close
    thread.kill
  end

  def talk(socket, pieces)
    socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    while (line = socket.gets)
      next unless line == "\r\n"

      pieces.each do |piece|
        return socket.close if piece.nil?

        socket.write(piece)
        Thread.pass
      end
    end
  rescue SystemCallError, IOError
    nil
  end

  def drive(*pieces, seconds: 0.2) = serve(*pieces) { |address| Isucon4.drive("hello", address, workers: 2, seconds: seconds) }

  # For so long that there are a few requests, also on a machine with other work.
  def assert_good(*pieces)
    result = nil
    [0.2, 1, 5, 20].each do |seconds|
      result = drive(*pieces, seconds: seconds)
      break if result[:requests] > 3
    end
    assert_equal({}, result[:errors], pieces.inspect)
    assert_operator result[:requests], :>, 3
    result
  end

  def test_a_length
    assert_good("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n#{HELLO}")
  end

  def test_connections_are_kept
    result = assert_good("HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n#{HELLO}")
    assert_operator result[:connections], :<=, 4
  end

  def test_chunks_in_pieces
    assert_good("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nHe", "llo\r\n", "8;x=y\r\n, World!\r\n0", "\r\n\r\n")
  end

  def test_chunks_with_trailers
    assert_good("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n#{HELLO}\r\n0\r\nA: b\r\n\r\n")
  end

  def test_until_the_end_of_the_connection
    assert_good("HTTP/1.1 200 OK\r\n\r\nHello", ", World!", nil)
  end

  def test_the_older_version_ends_its_connections
    result = assert_good("HTTP/1.0 200 OK\r\nContent-Length: 13\r\n\r\n#{HELLO}", nil)
    assert_operator result[:connections], :>=, result[:requests]
  end

  def test_the_head_in_pieces
    assert_good("HTTP/1.1 2", "00 OK\r", "\nContent-Le", "ngth: 13\r\n\r", "\nHello, World", "!")
  end

  def test_another_text_is_an_error
    result = drive("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, Wonder")
    assert_operator result[:errors].fetch(:page, 0), :>, 0
    assert_equal 0, result[:scenarios]
  end

  def test_a_longer_text_is_an_error
    assert_operator drive("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n#{HELLO}!")[:errors].fetch(:page, 0), :>, 0
  end

  def test_another_status_is_an_error
    assert_operator drive("HTTP/1.1 503 No\r\nContent-Length: 13\r\n\r\n#{HELLO}")[:errors].fetch(:status, 0), :>, 0
  end

  def test_what_is_no_answer_is_cut
    assert_operator drive("SSH-2.0-x\r\n\r\n")[:errors].fetch(:cut, 0), :>, 0
    assert_operator drive("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")[:errors].fetch(:cut, 0), :>, 0
  end

  def test_an_answer_cut_off_is_cut
    assert_operator drive("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello", nil)[:errors].fetch(:cut, 0), :>, 0
    assert_operator drive("HTTP/1.1 200 OK\r\nConte", nil)[:errors].fetch(:cut, 0), :>, 0
    assert_operator drive(nil)[:errors].fetch(:cut, 0), :>, 0
  end
end

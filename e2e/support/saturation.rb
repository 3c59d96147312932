# frozen_string_literal: true

module E2E
  # Clients that keep a server saturated: each asks again as soon as it is answered. Then newcomers connect, and each
  # asks once. The clock is the count of answers, so that neither a slow machine nor other work on it changes what is
  # measured: in one queue before all workers each request waits for as many answers as there are other clients.
  class Saturation
    ROUNDS_MAX = 6 # answers for each client; a newcomer that waits longer counts as never answered
    STUCK_S = 60   # without any answer

    # Waits, in answers to others: of each newcomer (Infinity: not answered), and of the requests that the others have
    # sent while no newcomer was answered yet; and of what was not yet answered at the end.
    Waits = Struct.new(:newcomers, :others, :unanswered) do
      def slowest = newcomers.max
      def slowest_of_all = (newcomers + others + unanswered).max
      def median = others.sort[others.size / 2]
      def ratio = slowest / median.to_f
    end

    Asker = Struct.new(:socket, :newcomer, :asked_at, :bytes)

    # address: as in E2E::Server#address; newcomers_at: that of newcomers, where it is another.
    def initialize(address, path, clients:, newcomers:, newcomers_at: address)
      @address = address
      @newcomers_at = newcomers_at
      @clients = clients
      @newcomers = newcomers
      @request = "GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n"
      @askers = {}
      @answers = 0
      @others = []
      @waits = []
    end

    # Waits of all that was asked before the newcomers come are forgotten.
    def run
      @clients.times { open(newcomer: false) }
      turn_until(ROUNDS_MAX * @clients) { @answers >= @clients * 3 / 2 }
      @others.clear
      @came_at = @answers
      @newcomers.times { open(newcomer: true) }
      turn_until(ROUNDS_MAX * (@clients + @newcomers)) { @waits.size == @newcomers && @others.size >= @clients / 2 }
      @others << 1 if @others.empty?
      unanswered = @askers.each_value.map { |asker| @answers - asker.asked_at }
      Waits.new(@waits + ([Float::INFINITY] * (@newcomers - @waits.size)), @others, unanswered)
    ensure
      @askers.each_key(&:close)
    end

    private

    def open(newcomer:)
      address = newcomer ? @newcomers_at : @address
      socket = address.is_a?(String) ? UNIXSocket.new(address) : TCPSocket.new(*address)
      @askers[socket] = Asker.new(socket, newcomer, @answers, +"")
      socket.write(@request)
    end

    def turn_until(answers_max)
      until_count = @answers + answers_max
      until yield || @answers >= until_count
        ready, = IO.select(@askers.keys, nil, nil, STUCK_S)
        break unless ready

        ready.each { |socket| read(@askers.fetch(socket)) }
      end
    end

    def read(asker)
      asker.bytes << asker.socket.read_nonblock(65_536)
      head, body = asker.bytes.split("\r\n\r\n", 2)
      return unless body && body.bytesize >= head[/^content-length: *(\d+)/i, 1].to_i
      raise "a client was answered #{head.lines.first}" unless head.start_with?("HTTP/1.1 200")

      asker.bytes.clear
      note(asker)
      @answers += 1
      return (@askers.delete(asker.socket).socket.close) if asker.newcomer

      asker.asked_at = @answers
      asker.socket.write(@request)
    end

    def note(asker)
      wait = @answers - asker.asked_at
      return @waits << wait if asker.newcomer

      @others << wait if @came_at && asker.asked_at >= @came_at && asker.asked_at <= @came_at + @clients
    end
  end
end

# frozen_string_literal: true

require_relative "support"

# Random clients against the real server, with an oracle: pipelines of valid requests in random pieces, with stalls and
# late readers, ended by a request that must be refused, a byte that spoils one, silence in the middle, a half close, a
# reset or a good-bye. Whatever the others do, each client gets exactly the answers that are its own, in order, and
# nothing else.
#
#   CHAOS_SECONDS=10   how long for each transport       CHAOS_REQUESTS=n   or until so many answers have come
#   CHAOS_SEED=n       the connections of an earlier run
#
# Silence costs its client the whole timeout, so few of them are silent.
E2E.suite("chaos", transports: E2E::EITHER, options: ["--body-memory-max", "8K", "--head-timeout", "4s", "--body-timeout", "4s"]) do
  wanted = ENV["CHAOS_REQUESTS"]&.then { |text| Integer(text) }
  seconds = wanted ? Float::INFINITY : Float(ENV.fetch("CHAOS_SECONDS", "10"))
  clients = 8
  refusals = %w[request chunked].flat_map { |folder| E2E::SpecCase.in(folder) }
                                .select { |one| one.limits.empty? && !one.ok? && !one.again? && one.bytes.bytesize < 20_000 }

  # What is sent, and [status, body, answers a HEAD request] that must come back; nil when nothing more is known.
  plan_type = Struct.new(:bytes, :answers, :ending)

  define_method(:chunks_of) do |random, body|
    coded = +"".b
    until body.empty?
      part = body.slice!(0, 1 + random.rand(body.bytesize))
      coded << format("%x", part.bytesize) << (random.rand(4).zero? ? ";a=b" : "") << "\r\n" << part << "\r\n"
    end
    coded << "0\r\n" << (random.rand(4).zero? ? "X-Sum: 1\r\n" : "") << "\r\n"
  end

  define_method(:one_request) do |random|
    body = random.bytes([0, 1, 100, 5000, 9000, 40_000].sample(random: random))
    case random.rand(7)
    when 0 then ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", [200, "Hello, World!", false]]
    when 1 then ["HEAD /big?size=5000 HTTP/1.1\r\nHost: a\r\n\r\n", [200, "", true]]
    when 2 then ["FROB /method HTTP/1.1\r\nHost: a\r\nX-Pad: #{"p" * random.rand(3000)}\r\n\r\n", [200, "FROB", false]]
    when 3 then ["GET /parts?count=3 HTTP/1.1\r\nHost: a\r\n\r\n", [200, "part 0\npart 1\npart 2\n", false]]
    when 4 then ["GET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n", [204, "", false]]
    when 5 then ["POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: #{body.bytesize}\r\n\r\n".b + body, [200, body, false]]
    else ["POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".b + chunks_of(random, body.dup), [200, body, false]]
    end
  end

  # A byte that no head may hold, anywhere in one: 400, whatever the request was.
  define_method(:spoilt) do |random|
    bytes, = one_request(random) until bytes && !bytes.start_with?("HEAD")
    bytes.dup.insert(random.rand(bytes.index("\r\n\r\n") + 3), ["\0", "\x01", "\x7f"].sample(random: random))
  end

  define_method(:unfinished) do |random|
    ["GET / HT", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
     "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"].sample(random: random)
  end

  endings = %i[leave half_close refused close reset spoilt] * 20 + [:silent]

  define_method(:plan_of) do |random|
    requests = Array.new(random.rand(8)) { one_request(random) }
    plan = plan_type.new(requests.map(&:first).join, requests.map(&:last), endings.sample(random: random))
    case plan.ending
    when :refused
      bad = refusals.sample(random: random)
      plan.bytes += "#{bad.bytes}GET /exit HTTP/1.1\r\nHost: a\r\n\r\n".b
      plan.answers << [bad.status, nil, bad.head_request?]
    when :close
      plan.bytes += "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /exit HTTP/1.1\r\nHost: a\r\n\r\n"
      plan.answers << [200, "Hello, World!", false]
    when :half_close
      plan.bytes += random.rand(3).zero? ? "" : unfinished(random)
    when :spoilt
      plan.bytes += "#{spoilt(random)}GET /exit HTTP/1.1\r\nHost: a\r\n\r\n".b
      plan.answers << [400, nil, false]
    when :silent
      plan.bytes += unfinished(random)
      plan.answers << [408, nil, false]
    when :reset
      plan.bytes = plan.bytes.byteslice(0, random.rand(plan.bytes.bytesize + 1))
    end
    plan
  end

  define_method(:send_in_pieces) do |client, bytes, random|
    until bytes.empty?
      size = random.rand(3).zero? ? bytes.bytesize : 1 + random.rand([bytes.bytesize, 2000].min)
      client.send_raw(bytes.slice!(0, size))
      IO.select(nil, nil, nil, random.rand / 500) if random.rand(6).zero?
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # the server has closed behind a refusal
  end

  # Who says close and goes on sending breaks RFC 9112 9.6 and may meet a closed socket, but not before the last answer
  # was read.
  define_method(:ended_well?) do |client, ending|
    ending == :leave ? client.quiet? : client.closed?
  rescue Errno::ECONNRESET
    raise unless ending == :close
    true
  end

  # Sends in a thread of its own, since a server that stops reading until its answers are taken is right to do so.
  define_method(:converse) do |seed|
    random = Random.new(seed)
    plan = plan_of(random)
    client = server.connect
    sender = Thread.new do
      send_in_pieces(client, plan.bytes.dup, random)
      client.half_close if plan.ending == :half_close
    end
    return (sender.join && client.reset) || 0 if plan.ending == :reset

    IO.select(nil, nil, nil, random.rand / 50) if random.rand(10).zero?

    plan.answers.each_with_index do |(status, body, head), place|
      response = client.read_response(head: head)
      raise "seed #{seed}: answer #{place} is #{response.status}, not #{status}" unless response.status == status
      raise "seed #{seed}: answer #{place} has another body" unless body.nil? || response.body.b == body.b
    end
    sender.join
    raise "seed #{seed}: more than the answers: #{client.read_to_end[0, 80].inspect}" unless ended_well?(client, plan.ending)
    plan.answers.size
  rescue SystemCallError, E2E::Client::Closed, E2E::Response::Malformed, E2E::Timeout => e
    raise "seed #{seed}, #{plan.ending}, #{plan.bytes.bytesize} bytes, #{plan.answers.map(&:first)}: #{e.class} #{e.message}"
  ensure
    sender&.join
    client&.close unless client&.socket&.closed?
  end

  define_method(:test_everybody_gets_what_is_theirs) do
    server
    first = Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000_000))
    deadline = E2E.clock + seconds
    counts = Array.new(clients) do |number|
      Thread.new do
        Thread.current.report_on_exception = false
        count = answers = 0
        while count.zero? || (E2E.clock < deadline && (!wanted || answers < wanted / clients))
          answers += converse(first + number + count * clients)
          count += 1
        end
        [count, answers]
      end
    end.map(&:value)
    connections, answers = counts.transpose.map(&:sum)
    assert_operator connections, :>=, clients, "from seed #{first} on"
    puts "chaos: #{E2E::COMMAND}, #{transport}: #{connections} connections, #{answers} answers, from seed #{first} on" if wanted || ENV["CHAOS_SECONDS"]
  end
end

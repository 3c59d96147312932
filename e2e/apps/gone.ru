# frozen_string_literal: true

# Calls whose client may leave; gone.psgi is its twin. The test and the application tell each other by files.
TEXT = { "content-type" => "text/plain" }.freeze
DIR = ENV.fetch("E2E_DIR")

def note(name, text = "") = File.write(File.join(DIR, name), text).then { File.rename(File.join(DIR, name), File.join(DIR, "#{name}.done")) }
def await(name) = (sleep(0.001) until File.exist?(File.join(DIR, name)))
def answer(text) = [200, TEXT, [text.to_s]]

# How often a millisecond passed until the client had gone; at most so many.
def looks(env, max) = (1..max).find { env["oribi.gone?"].call || (sleep(0.001) && false) } || "never"

run lambda { |env|
  path, name = env["PATH_INFO"][1..].split("/")
  case path
  when "looks" # from the moment on that the test says that the client has done what it does
    before = env["oribi.gone?"].call
    note("#{name}-entered")
    await("#{name}-left")
    note("#{name}-seen", "#{before} #{seen = looks(env, 30)}")
    answer(seen)
  when "cancel"
    begin
      note("#{name}-entered")
      begin
        name.start_with?("spin") ? loop {} : sleep(20)
      rescue StandardError
        note("#{name}-rescued")
      end
    ensure
      note("#{name}-ensured", $!.class.name)
    end
  when "rescues"
    begin
      note("#{name}-entered") # from here on the call may end
      sleep(20)
    rescue Oribi::ClientGone => error
      note("#{name}-ensured", error.class.name)
    end
    answer("rescued")
  when "makes-500" # as frameworks do
    begin
      note("#{name}-entered")
      sleep(20)
    rescue Exception # rubocop:disable Lint/RescueException
      note("#{name}-ensured", "500")
      [500, TEXT, ["error"]]
    end
  when "finishes" # not to be cancelled
    note("#{name}-entered")
    await("#{name}-left")
    sleep(0.2)
    note("#{name}-ensured", env["oribi.gone?"].call.to_s)
    answer("finished")
  when "raises"
    # First: where cancel_gone is on, the call may end as soon as its client has left.
    env["rack.response_finished"] << ->(_, status, _, error) { note("#{name}-ensured", [status.inspect, error.class].join(" ")) }
    note("#{name}-entered")
    await("#{name}-left")
    raise Oribi::ClientGone if env["oribi.gone?"].call

    answer("still there")
  when "stream"
    each = Enumerator.new do |out|
      out << "begun"
      note("#{name}-entered")
      sleep(20)
    ensure
      note("#{name}-ensured", $!.class.name)
    end
    [200, TEXT, each]
  when "late" # the answer is complete, and its client has gone then
    env["rack.response_finished"] << lambda { |*|
      await("#{name}-left")
      sleep(0.05)
      note("#{name}-ensured", env["oribi.gone?"].call.to_s)
    }
    answer("complete")
  when "brief"
    sleep(0.008 + (rand * 0.006)) # the helper begins to look after 10 ms
    answer("brief")
  else answer(Process.pid)
  end
}

# frozen_string_literal: true

# A HAProxy of a test's own, with a folder for its files; include it into a suite.
module E2E
  module HAProxy
    def setup
      super
      @dir ||= Dir.mktmpdir("oribi-haproxy")
    end

    def teardown
      super
    ensure
      if @haproxy
        Process.kill(:TERM, @haproxy)
        Process.wait(@haproxy)
      end
      FileUtils.remove_entry(@dir) if @dir
    end

    # Starts it and waits until it answers on the port, whose address it gives. It writes to @dir/log.
    def run_haproxy(configuration, port)
      front = ["127.0.0.1", port]
      spawn_haproxy(configuration)
      wait_until("HAProxy") { Client.new(front).then { |client| client.get("/").status == 200 && !client.close } rescue false }
      front
    end

    # Without that wait, where the port speaks HTTP/2.
    def spawn_haproxy(configuration)
      File.write("#{@dir}/cfg", configuration)
      @haproxy = spawn("haproxy", "-db", "-f", "#{@dir}/cfg", %i[out err] => "#{@dir}/log")
    end
  end
end

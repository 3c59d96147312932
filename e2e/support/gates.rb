# frozen_string_literal: true

module E2E
  # From then on a call is long: the worker starts its helper, or wakes it (ORIBI_LONG_US, core/src/worker/exchange.h,
  # and as much again).
  LONG_CALL_SECONDS = 0.002

  # Calls that stay inside the application until the test lets them go: /gate of e2e/apps makes NAME.entered and waits
  # for NAME.open, both in the server's folder.
  module Gates
    # A client whose request is inside the application, for so long that the call counts as a long one however soon the
    # gate is opened.
    def enter_gate(server, name)
      client = connect(server)
      client.request("GET", "/gate?name=#{name}")
      E2E.wait_until("the call #{name}") { entered?(server, name) }
      entered_at = E2E.clock
      E2E.wait_until("the call to be long") { E2E.clock - entered_at > LONG_CALL_SECONDS }
      client
    end

    def entered?(server, name) = !File.size?("#{server.dir}/#{name}.entered").nil? # its pid is in it
    def open_gate(server, *names) = names.each { |name| FileUtils.touch("#{server.dir}/#{name}.open") }
  end
end

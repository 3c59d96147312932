# frozen_string_literal: true

module E2E
  # Calls that stay inside the application until the test lets them go: /gate of e2e/apps makes NAME.entered and waits for NAME.open, both in
  # the server's folder.
  module Gates
    # A client whose request is inside the application.
    def enter_gate(server, name)
      client = connect(server)
      client.request("GET", "/gate?name=#{name}")
      E2E.wait_until("the call #{name}") { entered?(server, name) }
      client
    end

    def entered?(server, name) = File.exist?("#{server.dir}/#{name}.entered")
    def open_gate(server, *names) = names.each { |name| FileUtils.touch("#{server.dir}/#{name}.open") }
  end
end

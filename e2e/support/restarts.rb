# frozen_string_literal: true

require_relative "workspace"

module E2E
  # Reload and upgrade of servers that a launcher has started; for suites with `library`, the variables of its library.
  module Restarts
    # New code by HUP, then by USR2, and an end in good order.
    #
    # @param launcher [Array<String>] %{app} stands for the application's file
    def assert_restarts(launcher, env: library, dir: nil)
      space = Workspace.new
      one = Server.new(transport: transport, argv: launcher.map { |word| word.sub("%{app}", space.app) }, env: env, dir: dir, group: true)
      @servers << one
      one.start
      wait_until("the first code") { one.get("/").body == "first" }
      space.write_app("second")
      one.signal(:HUP)
      wait_until("the second code: #{one.stderr}") { one.get("/").body == "second" }
      space.write_app("third")
      one.signal(:USR2)
      assert_equal 0, one.wait.exitstatus, one.stderr
      assert_equal "third", one.get("/").body
      Process.kill(:TERM, wait_until("the successor's title") { one.group.find { |pid| Processes.title(pid).include?(" supervisor, ") } })
      wait_until("the end of all: #{one.group.map { |pid| Processes.title(pid) }}") { one.group.empty? }
    ensure
      space&.remove
    end
  end
end

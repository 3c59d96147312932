# frozen_string_literal: true

require_relative "support"

# A program that starts the server by itself, as Sinatra's classic applications do: `ruby app.rb`. Rack only.
E2E.suite("sinatra", transports: %i[tcp]) do
  include E2E::Home

  def serve
    file("app.rb", <<~RUBY)
      require "sinatra"
      set :server, :oribi
      set :environment, :production
      get("/") { "hello" }
      get("/gate") { File.write("entered", ""); sleep 0.01 until File.exist?("gate"); "passed" }
    RUBY
    one = E2E::Server.new(argv: ["ruby", "app.rb", "-o", "127.0.0.1", "-p", "%{port}"], env: { "RUBYLIB" => "#{E2E::ROOT}/ruby/lib", "E2E_CHDIR" => @home })
    @servers << one
    one.start
  end

  # Sinatra's own handler of the signal calls the server's stop, too: it is no second signal, which would cut the
  # request.
  def test_ruby_app_rb_ends_gracefully
    one = serve
    assert_equal "hello", one.get("/").body
    client = connect(one)
    client.request("GET", "/gate")
    wait_until("the call") { File.exist?("#{@home}/entered") }
    one.signal(:TERM)
    wait_until("the stop: #{one.stderr}") { one.stderr.include?("to finish what has begun") }
    file("gate", "")
    assert_equal "passed", client.read_response.body
    assert_equal 0, one.wait.exitstatus, one.stderr
    assert_includes one.stderr, "with backup from Oribi"
    refute_match(/stopping now|NoMethodError/, one.stderr)
  end

  def test_an_interrupt_ends_it_at_once
    one = serve
    one.signal(:INT)
    assert_equal 0, one.wait.exitstatus, one.stderr
    refute_match(/Error/, one.stderr)
  end
end

# frozen_string_literal: true

require "rack/utils"
require "sinatra/base"
require_relative "store"

module Board
  # A message board: read, post, delete, a picture with a message if you like, and the whole archive as a stream.
  class App < Sinatra::Base
    NICK_CHARS_MAX = 40
    BODY_CHARS_MAX = 2000
    PICTURE_BYTES_MAX = 2 * 1024 * 1024

    # What a browser shows by itself, told by its first bytes and not by what the client calls it.
    PICTURE_TYPES = {
      "image/png" => /\A\x89PNG\r\n\x1a\n/n,
      "image/jpeg" => /\A\xff\xd8\xff/n,
      "image/gif" => /\AGIF8[79]a/n,
      "image/webp" => /\ARIFF....WEBP/mn,
    }.freeze

    configure do
      set :root, __dir__
      set :server, false
      set :static, true
      # BOARD_DB: the file of the messages. BOARD_SEEDS=off: a new board opens empty.
      seeds = File.join(__dir__, "seeds") unless ENV["BOARD_SEEDS"] == "off"
      set :store, Store.new(ENV.fetch("BOARD_DB", File.join(__dir__, "tmp/board.sqlite3")), seeds: seeds)
    end

    helpers do
      def h(text) = Rack::Utils.escape_html(text.to_s)
      def store = settings.store
      def time_of(message) = Time.at(message["created_at"]).utc.strftime("%Y-%m-%d %H:%M UTC")

      # Form fields are text that somebody else encoded: made valid before anything looks at them.
      def field(name) = params[name].to_s.dup.force_encoding(Encoding::UTF_8).scrub.strip
    end

    before { headers "content-security-policy" => "default-src 'self'", "x-content-type-options" => "nosniff" }

    get("/") { erb :index, locals: { messages: store.latest, count: store.count, draft: {}, error: nil } }

    post "/messages" do
      draft = { nick: field("nick"), body: field("body") }
      picture = read_picture(params["picture"])
      store.add(**draft, **picture) if (error = problem_with(draft, picture)).nil?
      next redirect(to("/"), 303) unless error

      status 422
      erb :index, locals: { messages: store.latest, count: store.count, draft: draft, error: error }
    end

    post "/messages/:id/delete" do
      store.delete(Integer(params["id"], 10))
      redirect to("/"), 303
    rescue ArgumentError
      halt 404
    end

    get "/messages/:id/picture" do
      found = store.picture(params["id"].to_i) or halt 404
      headers "content-type" => found["picture_type"], "cache-control" => "private, max-age=86400"
      body found["picture"].b
    end

    # Written while it is read from the database: a board of any length needs the memory of twenty messages.
    get "/stream" do
      content_type :html
      top, bottom = erb(:stream).split("<!-- messages -->", 2)
      stream do |out|
        out << top
        last = 0
        until (messages = store.after(last)).empty?
          messages.each { |message| out << erb(:_message, layout: false, locals: { message: message, deletable: false }) }
          last = messages.last["id"]
        end
        out << bottom
      end
    end

    not_found { erb "<p class=\"notice\">There is nothing here. <a href=\"/\">Back to the board</a></p>" }

    private

    def read_picture(upload)
      return {} unless upload.is_a?(Hash) && upload[:tempfile]

      bytes = upload[:tempfile].read(PICTURE_BYTES_MAX + 1).to_s.b
      return {} if bytes.empty?

      type, = PICTURE_TYPES.find { |_, magic| magic.match?(bytes) }
      { picture: bytes, picture_type: type }
    end

    # One sentence for the person at the form, or nil.
    def problem_with(draft, picture)
      if draft[:nick].empty? || draft[:body].empty? then "Both a nick and a message are needed."
      elsif draft[:nick].size > NICK_CHARS_MAX then "A nick has at most #{NICK_CHARS_MAX} characters."
      elsif draft[:body].size > BODY_CHARS_MAX then "A message has at most #{BODY_CHARS_MAX} characters."
      elsif picture[:picture] && picture[:picture].bytesize > PICTURE_BYTES_MAX then "A picture has at most 2 MiB."
      elsif picture[:picture] && picture[:picture_type].nil? then "A picture is a PNG, JPEG, GIF or WebP file."
      end
    end
  end
end

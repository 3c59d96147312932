# frozen_string_literal: true

require "digest/sha2"
require "json"
require "roda"
require_relative "sqlite_store"
require_relative "contest_store"

module Isucon4
  LOCK_THRESHOLD = Integer(ENV.fetch("ISUCON4_USER_LOCK_THRESHOLD", "3"))
  BAN_THRESHOLD = Integer(ENV.fetch("ISUCON4_IP_BAN_THRESHOLD", "10"))

  # Stores that no request has just now; servers call with threads or with fibers, and none of these may share a
  # connection. The first is opened by the first request, behind the fork.
  IDLE_STORES = []

  def self.borrow_store = IDLE_STORES.pop || (ENV.key?("ISUCON4_SQLITE") ? SqliteStore.new(ENV.fetch("ISUCON4_SQLITE")) : ContestStore.new)
  def self.return_store(store) = IDLE_STORES.push(store)

  # The bank of the contest: a login form, the page behind it, and a report of who may not log in any more.
  class App < Roda
    NOTICES = {
      banned: "You're banned.",
      locked: "This account is locked.",
      wrong: "Wrong username or password",
    }.freeze

    plugin :hooks
    plugin :render, views: File.join(__dir__, "views"), engine: "erb"
    plugin :sessions, key: "isucon4", secret: "isucon4 benchmark, nothing worth a secret of its own".ljust(64, ".")
    plugin :flash
    plugin :public, root: ENV.fetch("ISUCON4_PUBLIC", "public")

    after { Isucon4.return_store(@store) if @store }

    route do |r|
      r.public
      r.root { view("form") }
      r.post("login") { login(r) }
      r.get("mypage") { mypage(r) }
      r.get("report") do
        response["content-type"] = "application/json"
        JSON.generate(store.report)
      end
    end

    private

    def store = @store ||= Isucon4.borrow_store

    def login(r)
      login = r.POST["login"].to_s
      user = store.user_by_login(login)
      right = !user.nil? && Digest::SHA256.hexdigest("#{r.POST["password"]}:#{user.salt}") == user.password_hash
      verdict = store.attempt(user, login, client(r), right)
      if verdict == :success
        session["user_id"] = user.id
        r.redirect("/mypage")
      end
      flash["notice"] = NOTICES.fetch(verdict)
      r.redirect("/")
    end

    def mypage(r)
      @user = session["user_id"] && store.user_by_id(session["user_id"])
      unless @user
        flash["notice"] = "You must be logged in"
        r.redirect("/")
      end
      @last = store.last_login(@user)
      view("mypage")
    end

    # What the nearest proxy says; it stands right in front.
    def client(r)
      forwarded = r.env["HTTP_X_FORWARDED_FOR"]
      forwarded ? forwarded[/[^,\s]+\s*\z/].to_s.strip : r.env["REMOTE_ADDR"]
    end

    def h(text) = Rack::Utils.escape_html(text.to_s)
  end
end

# frozen_string_literal: true

module Isucon4
  # As in the contest: users and the log in MariaDB, what an attempt asks for in Redis, where one script looks and
  # counts.
  class ContestStore
    SCRIPT = File.read(File.expand_path("../attempt.lua", __dir__)).freeze
    USER = "SELECT id, login, password_hash, salt FROM users WHERE %s = ?"
    INSERT = "INSERT INTO login_log (created_at, user_id, login, ip, succeeded) VALUES (?, ?, ?, ?, ?)"

    # The clients are loaded here: whoever keeps to SQLite need not have them.
    def initialize(redis: ENV.fetch("ISUCON4_REDIS"), mariadb: ENV.fetch("ISUCON4_MARIADB"))
      require "mysql2"
      require_relative "../../../redis/ruby/lib/oribi/redis"
      @redis = Oribi::Redis.new(path: redis, read_timeout_ms: 10_000)
      @script = @redis.script(SCRIPT)
      @db = Mysql2::Client.new(socket: mariadb, username: "isucon", database: "isucon4", encoding: "utf8mb4", as: :array, cast: true)
      @statements = Hash.new { |all, sql| all[sql] = @db.prepare(sql) }
    end

    def user_by_login(login) = user(format(USER, "login"), login)
    def user_by_id(id) = user(format(USER, "id"), id)

    # Gives :banned, :locked, :success or :wrong.
    def attempt(user, login, ip, right)
      now = Time.now.utc.strftime("%F %T")
      verdict = @script.call([], ip, user ? user.id : "", login, right ? "1" : "0", BAN_THRESHOLD, LOCK_THRESHOLD, now).to_sym
      @statements[INSERT].execute(now, user&.id, login, ip, verdict == :success ? 1 : 0)
      verdict
    end

    # The login before this one, or this one if it is the first.
    def last_login(user)
      last = @redis.command("LRANGE", "logins:#{user.id}", 0, 1).last
      last && LastLogin.new(*last.match(/\A(.*) (\S+)\z/).captures)
    end

    def report = %w[banned_ips locked_users].to_h { |name| [name, @redis.command("SMEMBERS", name)] }

    private

    def user(sql, value)
      row = @statements[sql].execute(value).first
      row && User.new(*row)
    end
  end
end

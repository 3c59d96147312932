# frozen_string_literal: true

require "sqlite3"

module Isucon4
  User = Struct.new(:id, :login, :password_hash, :salt)
  LastLogin = Struct.new(:created_at, :ip)

  # Everything in one SQLite file. The log is the truth: failures are counted from it each time, over two indexes.
  class SqliteStore
    BUSY_MS = 10_000

    # Threads of one process take turns here and not in SQLite, which waits with the interpreter's lock held.
    TURN = Mutex.new

    USER = "SELECT id, login, password_hash, salt FROM users WHERE %s = ?"
    FAILURES = <<~SQL
      SELECT COUNT(*) FROM login_log WHERE %<column>s = ?1 AND succeeded = 0
      AND id > COALESCE((SELECT MAX(id) FROM login_log WHERE %<column>s = ?1 AND succeeded = 1), 0)
    SQL
    INSERT = "INSERT INTO login_log (created_at, user_id, login, ip, succeeded) VALUES (?, ?, ?, ?, ?)"
    LAST = "SELECT created_at, ip FROM login_log WHERE user_id = ? AND succeeded = 1 ORDER BY id DESC LIMIT 2"
    BLOCKED = <<~SQL
      SELECT log.%<column>s FROM login_log log
      JOIN (SELECT %<column>s, MAX(CASE succeeded WHEN 1 THEN id ELSE 0 END) AS success FROM login_log GROUP BY %<column>s) last USING (%<column>s)
      WHERE log.id > last.success GROUP BY log.%<column>s HAVING COUNT(*) >= ?
    SQL

    def initialize(path)
      @db = SQLite3::Database.new(path)
      @db.busy_timeout(BUSY_MS)
      @db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;")
      @statements = Hash.new { |all, sql| all[sql] = @db.prepare(sql) }
    end

    def user_by_login(login) = user(format(USER, "login"), login)
    def user_by_id(id) = user(format(USER, "id"), id)

    # Looks and logs in one transaction. Gives :banned, :locked, :success or :wrong.
    def attempt(user, login, ip, right)
      verdict = nil
      TURN.synchronize do
        @db.transaction(:immediate) do
          verdict = verdict(user, ip, right)
          now = Time.now.utc.strftime("%F %T")
          rows(INSERT, now, user&.id, login, ip, verdict == :success ? 1 : 0)
        end
      end
      verdict
    end

    # The login before this one, or this one if it is the first.
    def last_login(user)
      last = rows(LAST, user.id).last
      last && LastLogin.new(*last)
    end

    def report
      locked = rows("SELECT login FROM users WHERE id IN (#{format(BLOCKED, column: "user_id")})", LOCK_THRESHOLD)
      { banned_ips: rows(format(BLOCKED, column: "ip"), BAN_THRESHOLD).flatten, locked_users: locked.flatten }
    end

    private

    def verdict(user, ip, right)
      return :banned if failures("ip", ip) >= BAN_THRESHOLD
      return :locked if user && failures("user_id", user.id) >= LOCK_THRESHOLD

      right ? :success : :wrong
    end

    def failures(column, value) = rows(format(FAILURES, column: column), value).first.first

    def user(sql, value)
      row = rows(sql, value).first
      row && User.new(*row)
    end

    def rows(sql, *values) = @statements[sql].execute!(*values)
  end
end

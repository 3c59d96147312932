# frozen_string_literal: true

require "fileutils"
require_relative "data"

# The two stores: made ready, put back to the contest's first state before each run, ended. `env` tells the applications
# where they are.
module Isucon4
  STORES = %w[sqlite contest].freeze

  def self.store(kind, data, dir)
    { "sqlite" => SqliteFile, "contest" => ContestServers }.fetch(kind).new(data, dir)
  end

  # One file. Filled once beside the data; every use begins with a copy.
  class SqliteFile
    SCHEMA = <<~SQL
      CREATE TABLE users (id INTEGER PRIMARY KEY, login TEXT NOT NULL UNIQUE, password_hash TEXT NOT NULL, salt TEXT NOT NULL);
      CREATE TABLE login_log (
        id INTEGER PRIMARY KEY, created_at TEXT NOT NULL, user_id INTEGER, login TEXT NOT NULL, ip TEXT NOT NULL, succeeded INTEGER NOT NULL
      );
      CREATE INDEX login_log_user ON login_log (user_id, succeeded, id);
      CREATE INDEX login_log_ip ON login_log (ip, succeeded, id);
    SQL

    def self.missing
      require "sqlite3"
      nil
    rescue LoadError
      "sqlite3 for Ruby is missing (script/setup run)"
    end

    def initialize(data, dir)
      reason = self.class.missing and raise reason
      @data = data
      @path = File.join(dir, "bank.sqlite3")
    end

    def env = { "ISUCON4_SQLITE" => @path }

    def start
      FileUtils.cp(template, @path)
      self
    end

    # Works under a running server: the log's first rows are never touched.
    def reset
      db = SQLite3::Database.new(@path)
      db.busy_timeout(10_000)
      db.execute("DELETE FROM login_log WHERE id > ?", [@data.log.count])
    ensure
      db&.close
    end

    def stop = nil

    private

    def template
      path = File.join(@data.dir, "template.sqlite3")
      return path if File.exist?(path)

      scratch = "#{path}.#{Process.pid}"
      db = SQLite3::Database.new(scratch)
      db.execute_batch(SCHEMA)
      db.transaction { fill(db) }
      db.close
      File.rename(scratch, path)
      path
    end

    def fill(db)
      user = db.prepare("INSERT INTO users VALUES (?, ?, ?, ?)")
      @data.users.each { |id, login, _, hash, salt, _| user.execute(id.to_i, login, hash, salt) }
      row = db.prepare("INSERT INTO login_log VALUES (?, ?, ?, ?, ?, ?)")
      @data.log.each { |id, at, user_id, login, ip, succeeded| row.execute(id.to_i, at, user_id.to_i, login, ip, succeeded.to_i) }
      [user, row].each(&:close)
    end
  end

  # Redis and MariaDB of our own: unix sockets and data in a private folder, nothing of the machine's servers is read or
  # asked.
  class ContestServers
    START_SECONDS = 60
    STOP_SECONDS = 20
    MARIADB_OPTIONS = %w[--skip-networking --skip-grant-tables --skip-log-bin --innodb-flush-log-at-trx-commit=0
                         --innodb-buffer-pool-size=256M --secure-file-priv= --character-set-server=utf8mb4].freeze
    SCHEMA = [
      "CREATE DATABASE isucon4",
      "CREATE TABLE isucon4.users (id INT PRIMARY KEY AUTO_INCREMENT, login VARCHAR(255) NOT NULL UNIQUE, " \
      "password_hash VARCHAR(255) NOT NULL, salt VARCHAR(255) NOT NULL)",
      "CREATE TABLE isucon4.login_log (id BIGINT PRIMARY KEY AUTO_INCREMENT, created_at DATETIME NOT NULL, user_id INT, " \
      "login VARCHAR(255) NOT NULL, ip VARCHAR(255) NOT NULL, succeeded TINYINT NOT NULL)",
    ].freeze
    BATCH = 1_000

    # redis-check-rdb is the server's own binary under another name; its package, unlike redis-server, starts nothing
    # when installed.
    REDIS = %w[/usr/bin/redis-server /usr/bin/redis-check-rdb].freeze

    def self.missing
      return "redis is missing (script/setup bench)" unless REDIS.any? { |path| File.exist?(path) }
      return "mariadbd is missing (script/setup bench)" unless File.exist?("/usr/sbin/mariadbd")

      require "mysql2"
      require "redis-client"
      nil
    rescue LoadError => e
      "#{e.message} (script/setup bench)"
    end

    def initialize(data, dir)
      reason = self.class.missing and raise reason
      @data = data
      @dir = dir
      @pids = []
      @redis_path = File.join(dir, "redis.sock")
      @mariadb_path = File.join(dir, "mariadb.sock")
    end

    def env = { "ISUCON4_REDIS" => @redis_path, "ISUCON4_MARIADB" => @mariadb_path }

    def start
      start_redis
      start_mariadb
      @db = until_there("MariaDB") { Mysql2::Client.new(socket: @mariadb_path, username: "isucon") }
      @redis = until_there("Redis") { RedisClient.config(path: @redis_path).new_client.tap { |redis| redis.call("PING") } }
      SCHEMA.each { |sql| @db.query(sql) }
      load_table("users", @data.users_path, "(id, login, @password, password_hash, salt, @locked)")
      load_table("login_log", @data.log_path, "(id, created_at, user_id, login, ip, succeeded)")
      reset
      self
    rescue StandardError
      stop
      raise
    end

    def reset
      @db.query("DELETE FROM isucon4.login_log WHERE id > #{@data.log.count}")
      @redis.call("FLUSHALL")
      counters.each_slice(BATCH) do |commands|
        @redis.pipelined { |pipeline| commands.each { |command| pipeline.call(*command) } }
      end
    end

    def stop
      @pids.each { |pid| Process.kill(:TERM, pid) }
      deadline = now + STOP_SECONDS
      @pids.each do |pid|
        IO.select(nil, nil, nil, 0.02) until (ended = Process.waitpid(pid, Process::WNOHANG)) || now > deadline
        Process.wait(pid) unless ended || !Process.kill(:KILL, pid)
      end
      @pids.clear
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def start_redis
      path = REDIS.find { |binary| File.exist?(binary) }
      start_one("redis", [path, "redis-server"], "--port", "0", "--unixsocket", @redis_path, "--save", "", "--appendonly", "no", "--dir", @dir)
    end

    def start_mariadb
      folder = File.join(@dir, "mariadb")
      user = Process.uid.zero? ? ["--user=root"] : []
      system("mariadb-install-db", "--no-defaults", "--datadir=#{folder}", "--skip-test-db", *user,
             out: File.join(@dir, "mariadb-install.log"), err: %i[child out]) or raise "mariadb-install-db failed: #{@dir}/mariadb-install.log"
      start_one("mariadb", ["/usr/sbin/mariadbd", "mariadbd"], "--no-defaults", "--datadir=#{folder}", "--socket=#{@mariadb_path}",
                "--pid-file=#{@dir}/mariadb.pid", *user, *MARIADB_OPTIONS)
    end

    def start_one(name, *argv)
      @pids << spawn(*argv, in: File::NULL, out: File.join(@dir, "#{name}.log"), err: %i[child out], pgroup: true)
    end

    def until_there(name)
      deadline = now + START_SECONDS
      begin
        yield
      rescue StandardError => e
        raise "#{name} did not start within #{START_SECONDS} s: #{e.message} (#{@dir})" if now > deadline

        IO.select(nil, nil, nil, 0.05)
        retry
      end
    end

    def load_table(table, path, columns)
      @db.query("LOAD DATA INFILE '#{@db.escape(path)}' INTO TABLE isucon4.#{table} CHARACTER SET utf8mb4 #{columns}")
    end

    # What the log comes to: failures since the last success, the last two successes, who is locked. No address of it is
    # banned.
    def counters
      failures = Hash.new(0)
      successes = Hash.new { |all, id| all[id] = [] }
      logins = {}
      commands = []
      @data.log.each do |_, at, id, login, ip, succeeded|
        logins[id] = login
        if succeeded == "1"
          failures.delete(id)
          successes[id] = [*successes[id].last(1), "#{at} #{ip}"]
        else
          failures[id] += 1
          commands << ["HSET", "ip_failures", ip, "1"]
        end
      end
      failures.each { |id, count| commands << ["HSET", "user_failures", id, count.to_s] }
      failures.each { |id, count| commands << ["SADD", "locked_users", logins[id]] if count >= Data::LOCK_THRESHOLD }
      commands + successes.map { |id, rows| ["LPUSH", "logins:#{id}", *rows] }
    end
  end
end

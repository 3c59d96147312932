# frozen_string_literal: true

require "fileutils"
require "sqlite3"

module Board
  # The messages, in one SQLite file. A connection must not cross a fork, so each process opens its own when it first
  # needs one; within a process the threads take turns.
  class Store
    SCHEMA = <<~SQL
      create table if not exists messages(
        id integer primary key autoincrement,
        nick text not null,
        body text not null,
        picture blob,
        picture_type text,
        created_at integer not null)
    SQL

    COLUMNS = "id, nick, body, picture_type, created_at"
    PAGE_SIZE = 50

    def initialize(path)
      @path = path
      @lock = Mutex.new
    end

    # The newest messages first, without their pictures.
    def latest = query("select #{COLUMNS} from messages order by id desc limit ?", PAGE_SIZE)

    def count = query("select count(*) as count from messages").first["count"]

    # A few messages after `id`, oldest first: how a long list is read without holding it.
    def after(id, limit: 20) = query("select #{COLUMNS} from messages where id > ? order by id limit ?", id, limit)

    # The picture and its type, or nil.
    def picture(id) = query("select picture, picture_type from messages where id = ? and picture is not null", id).first

    def add(nick:, body:, picture: nil, picture_type: nil)
      query("insert into messages(nick, body, picture, picture_type, created_at) values(?, ?, ?, ?, ?)",
            nick, body, picture && SQLite3::Blob.new(picture), picture_type, Time.now.to_i)
    end

    def delete(id) = query("delete from messages where id = ?", id)

    private

    def query(sql, *values) = @lock.synchronize { database.execute(sql, values) }

    def database
      return @database if @pid == Process.pid

      FileUtils.mkdir_p(File.dirname(@path))
      @pid = Process.pid
      @database = SQLite3::Database.new(@path, results_as_hash: true)
      @database.busy_timeout(5000)
      @database.execute("pragma journal_mode = wal")
      @database.execute(SCHEMA)
      @database
    end
  end
end

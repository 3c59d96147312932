# frozen_string_literal: true

require "fileutils"
require "json"
require "sqlite3"

module Board
  # The messages, in one SQLite file. A connection must not cross a fork, so each process opens its own when it first
  # needs one; within a process the threads take turns. A new file gets the messages of the folder `seeds`, if one is
  # given.
  class Store
    SCHEMA = <<~SQL
      create table messages(
        id integer primary key autoincrement,
        nick text not null,
        body text not null,
        picture blob,
        picture_type text,
        created_at integer not null)
    SQL

    COLUMNS = "id, nick, body, picture_type, created_at"
    PAGE_SIZE = 50

    def initialize(path, seeds: nil)
      @path = path
      @seeds = seeds
      @lock = Mutex.new
    end

    # The newest messages first, without their pictures.
    def latest = query("select #{COLUMNS} from messages order by id desc limit ?", PAGE_SIZE)

    def count = query("select count(*) as count from messages").first["count"]

    # A few messages after `id`, oldest first: how a long list is read without holding it.
    def after(id, limit: 20) = query("select #{COLUMNS} from messages where id > ? order by id limit ?", id, limit)

    # The picture and its type, or nil.
    def picture(id) = query("select picture, picture_type from messages where id = ? and picture is not null", id).first

    def add(**message) = @lock.synchronize { insert(database, **message) }

    def delete(id) = query("delete from messages where id = ?", id)

    private

    def query(sql, *values) = @lock.synchronize { database.execute(sql, values) }

    def insert(database, nick:, body:, picture: nil, picture_type: nil, created_at: Time.now.to_i)
      database.execute("insert into messages(nick, body, picture, picture_type, created_at) values(?, ?, ?, ?, ?)",
                       [nick, body, picture && SQLite3::Blob.new(picture), picture_type, created_at])
    end

    def database
      return @database if @pid == Process.pid

      FileUtils.mkdir_p(File.dirname(@path))
      opened = SQLite3::Database.new(@path, results_as_hash: true)
      opened.busy_timeout(5000)
      write_ahead(opened)
      opened.transaction(:immediate) { prepare(opened) }
      @pid = Process.pid
      @database = opened
    end

    # Of several processes that do this to a new file at once SQLite refuses all but one, and waits for none of them.
    def write_ahead(database, tries: 500)
      database.execute("pragma journal_mode = wal")
    rescue SQLite3::BusyException
      raise if (tries -= 1).zero?

      sleep 0.01
      retry
    end

    # Only one process finds no table: the others wait for its transaction.
    def prepare(database)
      return unless database.execute("select 1 from sqlite_master where name = 'messages'").empty?

      database.execute(SCHEMA)
      seeds.each { |message| insert(database, **message) }
    end

    def seeds
      return [] unless @seeds

      JSON.parse(File.read(File.join(@seeds, "messages.json"))).map do |seed|
        { nick: seed["nick"], body: seed["body"], created_at: Time.now.to_i - seed["minutes_ago"] * 60, picture_type: seed["picture_type"],
          picture: seed["picture"] && File.binread(File.join(@seeds, seed["picture"])) }
      end
    end
  end
end

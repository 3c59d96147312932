# frozen_string_literal: true

require "digest/sha2"
require "fileutils"

# The contest's data, drawn from one seed: the same on every machine, in both stores.
#
# users.tsv id login password password_hash salt locked what the stores are filled from; the driver reads id, login,
# password, locked log.tsv id created_at user_id login ip succeeded logins of the "used" users, the last fortieth of all
# public/ the four assets of a page, of the contest's sizes
module Isucon4
  class Data
    SEED = 20_140_927
    USERS = 200_000
    LOG_ROWS_PER_USED = 6
    LOCK_THRESHOLD = 3
    BAN_THRESHOLD = 10
    FAMOUS = (1..9)
    SYLLABLES = %w[ka ki ku ke ko sa shi su se so ta chi tsu te to na ni nu ne no ha hi fu he ho ma mi mu me mo ya yu yo ra ri ru re ro wa].freeze
    ALPHABET = [*"a".."z", *"A".."Z", *"0".."9"].freeze
    ASSETS = {
      "stylesheets/frame.css" => 109_518,
      "stylesheets/theme.css" => 53_197,
      "stylesheets/bank.css" => 660,
      "images/bank.png" => 16_456,
    }.freeze
    FIRST_LOGIN = Time.utc(2014, 8, 1)

    User = Struct.new(:id, :login, :password, :salt, :locked) do
      def password_hash = Digest::SHA256.hexdigest("#{password}:#{salt}")
      def line = [id, login, password, password_hash, salt, locked ? 1 : 0].join("\t")
    end

    attr_reader :dir

    # Kept in `dir` once generated; another number of users is another folder.
    def initialize(dir, users: USERS)
      @dir = File.join(dir, "data-#{users}")
      @count = users
    end

    def users_path = File.join(dir, "users.tsv")
    def log_path = File.join(dir, "log.tsv")
    def public_dir = File.join(dir, "public")

    # Written beside and renamed: an interrupted run leaves nothing half done.
    def generate
      return self if File.directory?(dir)

      scratch = "#{dir}.#{Process.pid}"
      FileUtils.mkdir_p(scratch)
      @random = Random.new(SEED)
      write_users(File.join(scratch, "users.tsv"))
      write_log(File.join(scratch, "log.tsv"))
      write_assets(File.join(scratch, "public"))
      File.rename(scratch, dir)
      self
    ensure
      FileUtils.rm_rf(scratch) if scratch
    end

    def users = File.foreach(users_path, chomp: true).lazy.map { |line| line.split("\t") }
    def log = File.foreach(log_path, chomp: true).lazy.map { |line| line.split("\t", -1) }

    private

    def used_count = @count / 40
    def first_used = @count - used_count + 1

    def write_users(path)
      @used = []
      File.open(path, "w") do |file|
        (1..@count).each do |id|
          user = user(id)
          @used << user if id >= first_used
          file.puts user.line
        end
      end
    end

    # Of the used users every second one is locked.
    def user(id)
      return User.new(id, "isucon#{id}", "isuconpass#{id}", "salt#{id}", false) if FAMOUS.include?(id)

      login = Array.new(3) { SYLLABLES.sample(random: @random) }.join + id.to_s
      User.new(id, login, letters(12), letters(8), id >= first_used && id.odd?)
    end

    def letters(count) = Array.new(count) { ALPHABET.sample(random: @random) }.join

    # Every used user's attempts keep their order, and those of all users are shuffled into each other.
    def write_log(path)
      waiting = @used.to_h { |user| [user, attempts(user)] }
      order = @used.flat_map { |user| [user] * LOG_ROWS_PER_USED }.shuffle(random: @random)
      time = FIRST_LOGIN
      failed = 0
      File.open(path, "w") do |file|
        order.each.with_index(1) do |user, id|
          succeeded = waiting[user].shift
          ip = succeeded ? "127.250.0.#{@random.rand(1..254)}" : "127.200.#{(failed += 1) / 256}.#{failed % 256}"
          file.puts [id, (time += @random.rand(1..60)).strftime("%F %T"), user.id, user.login, ip, succeeded ? 1 : 0].join("\t")
        end
      end
    end

    # A locked user failed as often as it takes after the last success; the others succeeded last.
    def attempts(user)
      rest = Array.new(LOG_ROWS_PER_USED - LOCK_THRESHOLD - 1) { @random.rand < 0.7 }
      user.locked ? [*rest, true, *[false] * LOCK_THRESHOLD] : [*rest, *[true] * LOCK_THRESHOLD, true]
    end

    def write_assets(folder)
      ASSETS.each do |name, bytes|
        path = File.join(folder, name)
        FileUtils.mkdir_p(File.dirname(path))
        File.binwrite(path, name.end_with?(".css") ? sheet(bytes) : @random.bytes(bytes))
      end
    end

    def sheet(bytes)
      text = +""
      text << ".#{letters(8)}{margin:#{@random.rand(99)}px;color:##{format("%06x", @random.rand(1 << 24))}}\n" while text.size < bytes
      text[0, bytes]
    end
  end
end

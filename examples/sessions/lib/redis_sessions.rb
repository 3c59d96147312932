# frozen_string_literal: true

require "json"
require "oribi/redis"
require "rack/session" # the gem rack-session, where an older rack with a folder of that name is installed too
require "rack/session/abstract/id"

# Sessions of rack-session in Redis, as JSON: use RedisSessions, redis: client, ttl_s: 3600. A session that is not used
# for ttl_s seconds is gone. The browser has a random name; Redis knows the session by that name's digest, so that who
# reads Redis cannot go on as somebody. Without Redis a request fails; it does not go on as nobody's.
class RedisSessions < Rack::Session::Abstract::PersistedSecure
  PREFIX = "session:"

  def initialize(app, redis: Oribi::Redis.new, ttl_s: 3600, **options)
    super(app, options)
    @redis = redis
    @ttl_s = ttl_s
  end

  # A name that Redis does not know becomes nobody's: a browser cannot choose its own.
  def find_session(_request, sid)
    text = sid && @redis.command("GETEX", key(sid), "EX", @ttl_s)
    text ? [sid, JSON.parse(text)] : [generate_sid, {}]
  end

  def write_session(_request, sid, session, _options)
    @redis.command("SET", key(sid), JSON.generate(session), "EX", @ttl_s)
    sid
  end

  def delete_session(_request, sid, options)
    @redis.command("DEL", key(sid))
    generate_sid unless options[:drop]
  end

  private

  def key(sid) = PREFIX + sid.private_id
end

-- One login attempt against the counters, in one piece: no other attempt comes between looking and counting.
-- ARGV: ip, user id or "", login, "1" if the password is right, ban threshold, lock threshold, time. Gives banned, locked, success or wrong.
local ip, user, login, right, ban, lock, time = unpack(ARGV)

local function failures(hash, key)
  return tonumber(redis.call('HGET', hash, key) or '0')
end

local verdict = 'wrong'
if failures('ip_failures', ip) >= tonumber(ban) then
  verdict = 'banned'
elseif user ~= '' and failures('user_failures', user) >= tonumber(lock) then
  verdict = 'locked'
elseif right == '1' then
  verdict = 'success'
end

if verdict == 'success' then
  redis.call('HDEL', 'ip_failures', ip)
  redis.call('HDEL', 'user_failures', user)
  redis.call('LPUSH', 'logins:' .. user, time .. ' ' .. ip)
  redis.call('LTRIM', 'logins:' .. user, 0, 1)
  return verdict
end

if redis.call('HINCRBY', 'ip_failures', ip, 1) >= tonumber(ban) then
  redis.call('SADD', 'banned_ips', ip)
end
if user ~= '' and redis.call('HINCRBY', 'user_failures', user, 1) >= tonumber(lock) then
  redis.call('SADD', 'locked_users', login)
end
return verdict

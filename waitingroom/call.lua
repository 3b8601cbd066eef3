-- call.lua calls the next numbers, so that there is always somebody here for
-- the next token. Any node runs it at any time: how many are called follows from
-- how many are here, not from who asks.
--
-- Those who are here and those called within the last two to four seconds make
-- up ten seconds of the pace. So of five who are called four may be absent, and
-- the pace is kept all the same.
--
-- For a minute after a room was made anew, each number that was given before counts as
-- somebody who is here: most have not come back with theirs yet, and would be called all
-- at once.
--
-- KEYS    room, q, try, seen
-- ARGV    which room
-- Returns {how far the line is called}; {cold}

local room, q, try, seen = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local r = read(room)
if not r then return {'cold'} end
if r.state ~= 'open' or r.free <= 0 then return {r.serving} end
local now = clock()
settle(room, r, seen, now)
forget(try, seen, now)

local f = redis.call('HMGET', room, 'turned', 'later')
if math.abs(now - tonumber(f[1])) >= 2000 then
  r.was = tonumber(f[2])
  redis.call('HSET', room, 'was', f[2], 'turned', now, 'later', r.serving)
end
local here = redis.call('ZCARD', try)
local young = redis.call('ZCOUNT', q, '(' .. r.was, r.serving) - redis.call('ZCOUNT', try, '(' .. r.was, r.serving)
local want = math.ceil(r.pace / 6) - here - young
if want <= 0 then return {r.serving} end

local furthest = r.last
if r.serving < r.given and math.abs(now - r.since) < 60000 then
  furthest = math.min(r.last, r.was + math.ceil(r.pace / 6))
end
local found = redis.call('ZRANGEBYSCORE', q, '(' .. r.serving, '+inf', 'WITHSCORES', 'LIMIT', want - 1, 1)
local serving = math.max(math.min(tonumber(found[2] or furthest), furthest), r.serving) -- fewer wait than could be called: all of them
redis.call('HSET', room, 'serving', serving)
return {serving}

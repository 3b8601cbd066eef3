-- room.lua stands before every other script of a waiting room: its clock, its
-- fields and its bucket. It runs nothing by itself.
--
-- The last argument of a script that reads the room is which room of the event whoever
-- asks means, or 0 when any will do.
--
-- Times are milliseconds of Redis, the only clock there is.

local function clock()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- read returns the room, or nil when it is cold: another room of the event may be there,
-- an earlier one that was removed while Redis was away, or a later one that whoever asks
-- has not heard of. One that was made by a release that did not say which it is is any,
-- until it is told.
local function read(key)
  local f = redis.call('HMGET', key, 'state', 'rate', 'burst', 'cap', 'session', 'free', 'serving', 'last', 'tokens', 'at', 'was', 'version', 'placed', 'since', 'given',
    'factor', 'held', 'room')
  if not f[1] then return end
  local asked, is = ARGV[#ARGV], f[18] or '0'
  if asked ~= '0' and is ~= '0' and asked ~= is then return end
  local rate, factor = tonumber(f[2]), tonumber(f[16] or 1)
  return {
    state = f[1], rate = rate, burst = tonumber(f[3]), cap = tonumber(f[4]), session = tonumber(f[5]),
    free = tonumber(f[6]), serving = tonumber(f[7]), last = tonumber(f[8]), tokens = tonumber(f[9]), at = tonumber(f[10]),
    was = tonumber(f[11]), -- how far it had called two to four seconds ago
    version = tonumber(f[12]), -- of what Postgres says of it
    placed = f[13] == '1', -- whoever was drawn has a place
    since = tonumber(f[14] or 0), -- when it was made in this Redis
    given = tonumber(f[15] or 0), -- numbers up to it were given before that
    factor = factor,
    pace = math.min(rate, math.max(1, math.floor(rate * factor + 0.5))), -- a minute, as it is now
    held = tonumber(f[17] or 0), -- seats that may become free again
    named = is ~= '0', -- says which room it is
  }
end

-- behind says that the room has not been told what whoever asks knows: the version of
-- that is the last argument but one. It is so in a Redis that has lost its last second.
local function behind(r)
  return tonumber(ARGV[#ARGV - 1]) > r.version
end

-- brim is what the bucket holds: the burst, or as much less as the pace is.
local function brim(r)
  return math.max(1, r.burst * r.factor)
end

-- fill returns how many may come in now by the pace: a bucket that holds burst
-- and gets pace a minute. The clock of a new primary may be behind: see settle.
--
-- The pace is never above the rate, nor the brim above the burst: however it is
-- steered, those let in within any time w are at most rate * w + burst.
local function fill(r, now)
  return math.min(brim(r), r.tokens + math.max(0, now - r.at) * r.pace / 60000)
end

-- settle ends what a primary whose clock was ahead has left in the future: the bucket
-- fills from now on, and whoever asked has asked now.
local function settle(room, r, seen, now)
  if now < r.at then redis.call('HSET', room, 'at', now) end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', seen, '(' .. now, '+inf', 'LIMIT', 0, 1000)) do
    redis.call('ZADD', seen, now, id)
  end
end

-- forget drops those who were called, asked, and have not asked again for a
-- while: nobody waits for them.
local function forget(try, seen, now)
  local gone = redis.call('ZRANGEBYSCORE', seen, '-inf', now - 5000, 'LIMIT', 0, 1000)
  if #gone > 0 then
    redis.call('ZREM', try, unpack(gone))
    redis.call('ZREM', seen, unpack(gone))
  end
end

-- inside counts those who are in the sale.
local function inside(adm, now)
  return redis.call('ZCOUNT', adm, '(' .. now, '+inf')
end

-- seated is how many may be inside by the seats that are left: as many as hold some,
-- at least, and three who look for each that is free. Some of them will leave
-- without; of those who are more, most would find nothing.
local function seated(r)
  return r.held + 3 * r.free
end

-- line returns where the place of somebody is kept: who is suspected waits in tar (zset:
-- who is suspected -> number; 0: has no place), which nobody serves.
local function line(q, tar, id)
  if redis.call('ZSCORE', tar, id) then return tar end
  return q
end

-- numbered returns the number of somebody in a line, or nil.
local function numbered(line, id)
  local number = tonumber(redis.call('ZSCORE', line, id) or nil)
  if number ~= 0 then return number end
end

-- place returns the number of somebody who waits in a line. known is the number a
-- signed place of theirs says, or 0: what Redis has lost comes back with it, nobody else
-- is given that number or a lower one any more, and of two the lower counts. Who has been
-- inside, or has left, comes back behind all others.
local function place(room, r, line, adm, id, known)
  local number = numbered(line, id)
  if known > 0 and (not number or known < number) and not redis.call('ZSCORE', adm, id) then
    redis.call('ZADD', line, known, id)
    if known > r.last then redis.call('HSET', room, 'last', known) end
    return known
  end
  return number
end

-- leave.lua ends the place of somebody, or what is left of their time inside: their
-- slot is free at once, and neither their pass nor a place they were given before is
-- good for anything any more. Who leaves a draw may join it again, and stays on its
-- list without a rank that counts: else nobody could prove that they were left out.
--
-- KEYS    room, q, tar, adm, try, seen, pre, new, rev (zset: passes that are over before
--         their time -> until)
-- ARGV    id, 1 when only who is inside leaves, which room
-- Returns {left, until when they would have been inside, or 0}; {cold}

local room, q, tar, adm, try, seen, pre, new, rev = unpack(KEYS)
local id = ARGV[1]

local r = read(room)
if not r then return {'cold'} end
local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
local now = clock()
if ARGV[2] ~= '1' then
  redis.call('ZREM', q, id)
  redis.call('ZADD', tar, 'XX', 0, id)
  redis.call('ZREM', try, id)
  redis.call('ZREM', seen, id)
  local listed = redis.call('HEXISTS', pre, id) == 1
  if listed and not redis.call('ZSCORE', adm, id) then redis.call('RPUSH', new, '-' .. id) end -- who has left already leaves no more
  if till <= now and (listed or r.state ~= 'draw') then
    local new = redis.call('ZADD', adm, now, id) == 1
    if new and not listed and not r.placed then redis.call('HINCRBY', room, 'strays', 1) end -- have left, and no list
  end
end
if till <= now then return {'left', 0} end
redis.call('ZADD', adm, now, id)
redis.call('ZREMRANGEBYSCORE', rev, '-inf', now)
redis.call('ZADD', rev, till, id .. '-' .. till)
return {'left', till}

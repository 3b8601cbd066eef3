-- leave.lua ends the place of somebody, or what is left of their time inside.
--
-- KEYS    room, q, adm, try, seen, pre
-- ARGV    id
-- Returns {left}; {cold}

local room, q, adm, try, seen, pre = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id = ARGV[1]

local r = read(room)
if not r then return {'cold'} end
redis.call('ZREM', q, id)
redis.call('ZREM', try, id)
redis.call('ZREM', seen, id)
if r.state == 'draw' then redis.call('HDEL', pre, id) end
local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
local now = clock()
if till > now then redis.call('ZADD', adm, now, id) end
return {'left'}

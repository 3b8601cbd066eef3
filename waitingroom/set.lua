-- set.lua changes what an operator or the sale says of a room. What the bucket
-- has got by the old rate it keeps, as far as the new burst allows.
--
-- KEYS    room
-- ARGV    field, value, ...: of state, rate, burst, cap, session, free
-- Returns {set}; {cold}

local room = KEYS[1]

local r = read(room)
if not r then return {'cold'} end
local now = clock()
local tokens = fill(r, now)
redis.call('HSET', room, unpack(ARGV))
r = read(room)
redis.call('HSET', room, 'tokens', string.format('%.3f', math.min(tokens, r.burst)), 'at', now)
return {'set'}

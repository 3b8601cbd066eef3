-- seal.lua fixes what a basket has: a sealed body is never swapped for another.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    basket  of this token
-- ARGV[1]    body of the basket as the caller has read it
-- ARGV[2]    the same, sealed
-- Returns    {basket, now in ms, basket}
--            {moved} {none} {cold}: nothing changed

local last, stored = unpack(redis.call('MGET', KEYS[1], KEYS[2]))
if not last then return {'cold'} end
if not stored then return {'none'} end
local state, first, till, cap, body = opened(stored)
if body ~= ARGV[1] then return {'moved'} end
if body ~= ARGV[2] then store(KEYS[2], state, first, till, cap, ARGV[2], 'KEEPTTL') end
return {'basket', select(2, clock()), redis.call('GET', KEYS[2])}

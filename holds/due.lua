-- due.lua names holds that have ended and whose end is not announced yet.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    held    zset: seats of a hold -> until
-- ARGV[1]    how many at most
-- Returns    {due, seats of a hold…}: with commas between
--            {cold}

local seq, held = KEYS[1], KEYS[2]

if redis.call('EXISTS', seq) == 0 then return {'cold'} end
local _, ms = clock()
-- 5 ms: see lapse.lua
local due = redis.call('ZRANGEBYSCORE', held, '-inf', ms - 5, 'LIMIT', 0, ARGV[1])
table.insert(due, 1, 'due')
return due

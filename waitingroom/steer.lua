-- steer.lua sets the pace of a room, unless another node did since it was read. What
-- the bucket has got by the old pace it keeps, as far as the new one allows.
--
-- KEYS    room
-- ARGV    when it was steered as it was read, factor, bad, why, cut, rose, calm, which room
-- Returns {steered}; {other}; {cold}

local room = KEYS[1]

local r = read(room)
if not r then return {'cold'} end
if (redis.call('HGET', room, 'steered') or '0') ~= ARGV[1] then return {'other'} end
local now = clock()
local tokens = fill(r, now)
r.factor = tonumber(ARGV[2])
redis.call('HSET', room, 'steered', math.max(now, tonumber(ARGV[1]) + 1), 'factor', ARGV[2], 'bad', ARGV[3], 'why', ARGV[4], 'cut', ARGV[5], 'rose', ARGV[6], 'calm', ARGV[7],
  'tokens', string.format('%.3f', math.min(tokens, brim(r))), 'at', now)
return {'steered'}

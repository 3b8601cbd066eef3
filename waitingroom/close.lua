-- close.lua ends the time of a draw: whoever comes from now on is behind all who
-- are on its list. Repeated it changes nothing.
--
-- KEYS    room, pre
-- ARGV    which room
-- Returns {how many are on the list}; {cold}

local room, pre = KEYS[1], KEYS[2]

local r = read(room)
if not r then return {'cold'} end
local listed = redis.call('HLEN', pre)
if r.state == 'draw' then redis.call('HSET', room, 'state', 'closed', 'last', math.max(listed, r.last)) end
return {listed}

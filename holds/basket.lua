-- basket.lua reads what a token holds, as it is at one moment.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    basket  of this token
-- KEYS[3..]  hold of each seat
-- ARGV[1]    token
-- ARGV[2]    body of the basket as the caller has read it
-- ARGV[3..]  each seat of it
-- Returns    {basket, now in ms, basket, seats whose hold is not this token's}
--            {moved} {none} {cold}

local token, believed = ARGV[1], ARGV[2]

local last, stored = unpack(redis.call('MGET', KEYS[1], KEYS[2]))
if not last then return {'cold'} end
if not stored then return {'none'} end
if select(5, opened(stored)) ~= believed then return {'moved'} end
local lost = {}
for k, holder in ipairs(values(3, #KEYS)) do
  if holder ~= token then lost[#lost + 1] = ARGV[k + 2] end
end
return {'basket', select(2, clock()), stored, lost}

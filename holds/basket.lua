-- basket.lua reads what a token holds, as it is at one moment.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    basket  hash of this token
-- KEYS[3..]  hold of each seat
-- ARGV[1]    token
-- ARGV[2]    seats the caller believes the basket has, with commas between
-- ARGV[3..]  each seat
-- Returns    {basket, now in ms, basket as HGETALL, seats whose hold is not this token's}
--            {moved} {none} {cold}

local seq, basket = KEYS[1], KEYS[2]
local token, seats = ARGV[1], ARGV[2]

if redis.call('EXISTS', seq) == 0 then return {'cold'} end
local believed = redis.call('HGET', basket, 'seats')
if not believed then return {'none'} end
if believed ~= seats then return {'moved'} end
local lost = {}
for k, holder in ipairs(values(3, #KEYS)) do
  if holder ~= token then lost[#lost + 1] = ARGV[k + 2] end
end
return {'basket', select(2, clock()), redis.call('HGETALL', basket), lost}

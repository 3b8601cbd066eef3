-- place.lua gives tickets of a draw their ranks as numbers. Repeated, and of a room that
-- is cold, it does the same. Of two numbers the lower counts.
--
-- KEYS    q, tar
-- ARGV    number, id, and so on
-- Returns {placed}

local q, tar = KEYS[1], KEYS[2]

if redis.call('EXISTS', tar) == 0 then
  redis.call('ZADD', q, 'LT', unpack(ARGV))
  return {'placed'}
end
for n = 1, #ARGV, 2 do
  local number, id = tonumber(ARGV[n]), ARGV[n + 1]
  local own = line(q, tar, id)
  local has = numbered(own, id)
  if not has or number < has then redis.call('ZADD', own, number, id) end
end
return {'placed'}

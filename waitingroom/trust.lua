-- trust.lua has accounts wait with all others again, with the number they have.
--
-- KEYS    q, tar
-- ARGV    ids
-- Returns {trusted}

local q, tar = KEYS[1], KEYS[2]

for _, id in ipairs(ARGV) do
  local number = numbered(tar, id)
  redis.call('ZREM', tar, id)
  if number then redis.call('ZADD', q, number, id) end
end
return {'trusted'}

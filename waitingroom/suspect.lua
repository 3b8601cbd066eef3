-- suspect.lua has accounts wait where nobody is let in, with the number they have. Of a
-- room that is cold it does the same.
--
-- KEYS    q, tar, try, seen
-- ARGV    ids
-- Returns {suspected}

local q, tar, try, seen = unpack(KEYS)

for _, id in ipairs(ARGV) do
  if not redis.call('ZSCORE', tar, id) then
    redis.call('ZADD', tar, redis.call('ZSCORE', q, id) or 0, id)
    redis.call('ZREM', q, id)
    redis.call('ZREM', try, id)
    redis.call('ZREM', seen, id)
  end
end
return {'suspected'}

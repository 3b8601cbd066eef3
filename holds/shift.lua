-- shift.lua lets baskets last longer, whoever's they are, and their caps with
-- them: each once in an operation. One that has ended is not revived.
--
-- KEYS[1]    seq        number of the last change
-- KEYS[2]    map        the map as announced
-- KEYS[3]    held       zset: seats of a hold -> until
-- KEYS[4]    log        stream of changes
-- KEYS[5]    operation  hash: by, at: what it began with; token -> 1: extended
-- KEYS[6..]  of each basket: basket, index of its account, hold of each seat
-- ARGV[1]    by how much, ms
-- ARGV[2]    how many baskets; none begins the operation
-- ARGV[3..]  of each: token, body of the basket as the caller has read it, how many seats, each seat
-- Returns    {done, at, a word, change and basket of each…}: at is when the operation began, ms.
--            A basket is moved, again (it was before), over, later (it began after the operation)
--            or changed: another than the caller has read
--            {other} (the operation began with another time) {cold}: nothing changed

local seq, map, held, log, operation = unpack(KEYS, 1, 5)
local by, baskets = ARGV[1] + 0, ARGV[2] + 0

local last = redis.call('GET', seq)
if not last then return {'cold'} end
local us, ms = clock(last)
numbered(string.format('%d', last + baskets))
local begun, at = unpack(redis.call('HMGET', operation, 'by', 'at'))
if begun and begun ~= ARGV[1] then return {'other'} end
at = at or ms

-- judged returns what becomes of a basket, and the seats it holds.
local function judged(b)
  if not b.state or b.state ~= 'held' or b.till <= ms then return 'over' end
  if b.body ~= b.believed then return 'changed' end
  if redis.call('HEXISTS', operation, b.token) == 1 then return 'again' end
  if #b.first > #at or b.first > at then return 'later' end
  for k, holder in ipairs(b.holders) do
    if not holder then return 'over' end
    if holder == b.token then
      b.mine[#b.mine + 1], b.holds[#b.holds + 1] = b.seats[k], b.keys[k]
    end
  end
  if #b.seats > 0 and #b.mine == 0 then return 'over' end
  return 'moved'
end

local read = {}
local key, arg = 6, 3
for n = 1, baskets do
  local count = ARGV[arg + 2] + 0
  local b = {key = KEYS[key], user = KEYS[key + 1], token = ARGV[arg], believed = ARGV[arg + 1], mine = {}, holds = {}}
  b.seats, b.keys = {unpack(ARGV, arg + 3, arg + 2 + count)}, {unpack(KEYS, key + 2, key + 1 + count)}
  b.stored = redis.call('GET', b.key)
  b.state, b.first, b.till, b.cap, b.body = opened(b.stored)
  b.holders = values(key + 2, key + 1 + count)
  b.word = judged(b)
  read[n] = b
  key, arg = key + 2 + count, arg + 3 + count
end

redis.call('HSET', operation, 'by', ARGV[1], 'at', at)
redis.call('PEXPIRE', operation, 3600000)
local out = {'done', at}
for _, b in ipairs(read) do
  local change, stored = '', b.stored
  if b.word == 'moved' then
    local till, cap = string.format('%d', b.till + by), string.format('%d', b.cap + by)
    redis.call('HSET', operation, b.token, 1)
    store(b.key, b.state, b.first, till, cap, b.body, 'PXAT', string.format('%d', till + 600000))
    for _, hold in ipairs(b.holds) do redis.call('PEXPIREAT', hold, till) end
    if #b.mine > 0 then
      redis.call('ZADD', held, till, table.concat(b.mine, ','))
      join(b.user, redis.call('GET', b.user), ms, till, b.mine)
      paint(map, b.mine, all(#b.mine, 1))
      change = announce(seq, log, last, us, ms,
        list('reserved', b.mine) .. ',"until":' .. till .. ',"tag":"' .. string.sub(b.token, 1, 6) .. '"')
      last = redis.call('GET', seq)
    end
    stored = redis.call('GET', b.key)
  end
  out[#out + 1] = b.word
  out[#out + 1] = change
  out[#out + 1] = stored or ''
end
return out

-- take.lua holds every seat asked for, or none.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seat -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    basket  hash of this token
-- KEYS[6]    user    zset of this account: seat -> until
-- KEYS[7]    areas   hash: places left
-- KEYS[8..]  hold of each seat
-- ARGV[1]    token
-- ARGV[2]    what only a take that is granted needs, in MessagePack, since a refusal
--            costs less for every argument less: account, how long to hold and how
--            long at most in ms, seats an account may hold, hash of the request,
--            quote, places by area as JSON ({} for none), seats with commas between,
--            an array of the seats, and the four words each of them is to BITFIELD
-- Returns    {held, change, first}: change is empty when no seat was asked for
--            {same, first, until, cap, seats, areas, quote}: this token's live basket, nothing changed
--            {taken, k…}: the k-th seats asked for; {area, name} {cap} {reused} {sold} {over} {foreign} {cold}: nothing changed

local seq, basket, token = KEYS[1], KEYS[5], ARGV[1]

local got = redis.call('MGET', seq, unpack(KEYS, 8))
local last = got[1]
if not last then return {'cold'} end

if redis.call('EXISTS', basket) == 1 then
  local account, _, _, _, hash = cmsgpack.unpack(ARGV[2])
  local b = redis.call('HMGET', basket, 'user', 'state', 'until', 'hash', 'first', 'cap', 'seats', 'areas', 'quote')
  if b[1] ~= account then return {'foreign'} end
  if b[2] == 'sold' then return {'sold'} end
  if b[2] ~= 'held' or b[3] <= select(2, clock()) then return {'over'} end
  if b[4] ~= hash then return {'reused'} end
  return {'same', b[5], b[3], b[6], b[7], b[8], b[9]}
end

local gone
for k = 2, #got do
  if got[k] then
    gone = gone or {'taken'}
    gone[#gone + 1] = k - 2
  end
end
if gone then return gone end

local map, held, log, user, areas = KEYS[2], KEYS[3], KEYS[4], KEYS[6], KEYS[7]
local rest, account, hold, most, limit, hash, quote, places, seats, each = cmsgpack.unpack_limit(ARGV[2], 9, 0)
if places ~= '{}' then
  for area, quantity in pairs(cjson.decode(places)) do
    if tonumber(redis.call('HGET', areas, area) or 0) < quantity then return {'area', area} end
  end
end

local us, ms = clock()
if #got > 1 and redis.call('ZCOUNT', user, ms, '+inf') + #got - 1 > limit then
  return {'cap'}
end

local first = tonumber(ms)
local ends = first + math.min(hold, most)
local till, cap = string.format('%d', ends), string.format('%d', first + most)
local change = ''

if #got > 1 then
  local index = {}
  for k = 1, #each do
    index[2 * k - 1], index[2 * k] = till, each[k]
  end
  redis.call('BITFIELD', map, select(2, cmsgpack.unpack_limit(ARGV[2], 4 * #each, rest)))
  for k = 8, #KEYS do
    redis.call('SET', KEYS[k], token, 'PXAT', till)
  end
  redis.call('ZADD', held, unpack(index))
  redis.call('ZADD', user, unpack(index))
  redis.call('PEXPIREAT', user, cap)
  change = announce(seq, log, last, us, ms,
    ',"reserved":[' .. seats .. '],"until":' .. till .. ',"tag":"' .. string.sub(token, 1, 6) .. '"')
end
redis.call('HSET', basket, 'user', account, 'seats', seats, 'areas', places, 'quote', quote, 'hash', hash,
  'first', ms, 'until', till, 'cap', cap, 'state', 'held')
redis.call('PEXPIREAT', basket, string.format('%d', ends + 600000))
return {'held', change, ms}

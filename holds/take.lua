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
-- ARGV[2]    account
-- ARGV[3]    how long to hold, ms
-- ARGV[4]    how long at most, whatever is extended, ms
-- ARGV[5]    seats an account may hold
-- ARGV[6]    hash of the request
-- ARGV[7]    quote
-- ARGV[8]    places by area, JSON; {} for none
-- ARGV[9]    seats, ascending, with commas between
-- ARGV[10..] of each seat: its index, and its place in the map as BITFIELD names it
-- Returns    {held, change, first, until, cap}: change is empty when no seat was asked for
--            {same, first, until, cap, seats, areas, quote}: this token's live basket, nothing changed
--            {taken, seat…} {area, name} {cap} {reused} {over} {foreign} {cold}: nothing changed

local seq, map, held, log, basket, user, areas = unpack(KEYS, 1, 7)
local token, account, hold, most, limit, hash, quote, places, seats = unpack(ARGV, 1, 9)

local got = redis.call('MGET', seq, unpack(KEYS, 8))
local last = got[1]
if not last then return {'cold'} end

if redis.call('EXISTS', basket) == 1 then
  local b = redis.call('HMGET', basket, 'user', 'state', 'until', 'hash', 'first', 'cap', 'seats', 'areas', 'quote')
  if b[1] ~= account then return {'foreign'} end
  if b[2] ~= 'held' or b[3] <= select(2, clock()) then return {'over'} end
  if b[4] ~= hash then return {'reused'} end
  return {'same', b[5], b[3], b[6], b[7], b[8], b[9]}
end

local gone
for k = 2, #got do
  if got[k] then
    gone = gone or {'taken'}
    gone[#gone + 1] = ARGV[2 * k + 6]
  end
end
if gone then return gone end

if places ~= '{}' then
  for area, quantity in pairs(cjson.decode(places)) do
    if tonumber(redis.call('HGET', areas, area) or 0) < quantity then return {'area', area} end
  end
end

local us, ms = clock()
if #got > 1 and redis.call('ZCOUNT', user, ms, '+inf') + #got - 1 > tonumber(limit) then
  return {'cap'}
end

local cap = string.format('%d', ms + most)
local till = string.format('%d', ms + math.min(hold, most))
local change = ''

if #got > 1 then
  local bits, index = {}, {}
  for k = 0, #got - 2 do
    local seat, place = ARGV[2 * k + 10], ARGV[2 * k + 11]
    bits[4 * k + 1], bits[4 * k + 2], bits[4 * k + 3], bits[4 * k + 4] = 'SET', 'u2', place, '1'
    index[2 * k + 1], index[2 * k + 2] = till, seat
  end
  redis.call('BITFIELD', map, unpack(bits))
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
redis.call('PEXPIREAT', basket, string.format('%d', till + 600000))
return {'held', change, ms, till, cap}

-- extend.lua lets a basket last longer, for its holder only, never shorter and
-- never past its cap.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seat -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    basket  hash of this token
-- KEYS[6]    user    zset of this account: seat -> until
-- KEYS[7..]  hold of each seat
-- ARGV[1]    token
-- ARGV[2]    account
-- ARGV[3]    how long from now, ms
-- ARGV[4]    seats the caller believes the basket has, with commas between
-- ARGV[5..]  each seat
-- Returns    {held, change, basket}: change is empty when the map said so already; basket as HGETALL
--            {lost, seat…} {sold} {over} {moved} {foreign} {none} {cold}: nothing changed

local seq, map, held, log, basket, user = unpack(KEYS, 1, 6)
local token, account, by, seats = unpack(ARGV, 1, 4)

local last = redis.call('GET', seq)
if not last then return {'cold'} end
local b = redis.call('HMGET', basket, 'user', 'state', 'seats', 'until', 'cap')
if not b[1] then return {'none'} end
if b[1] ~= account then return {'foreign'} end
local us, ms = clock()
if b[2] == 'sold' then return {'sold'} end
if b[2] ~= 'held' or b[4] <= ms then return {'over'} end
if b[3] ~= seats then return {'moved'} end

local lost, missing = {'lost'}, false
for k, holder in ipairs(values(7, #KEYS)) do
  if not holder then
    missing = true
  elseif holder ~= token then
    lost[#lost + 1] = ARGV[k + 4]
  end
end
if #lost > 1 then return lost end
if missing then return {'over'} end

local mine = {unpack(ARGV, 5)}
local unshown = {}
for k, state in ipairs(shown(map, mine)) do
  if state ~= 1 then unshown[#unshown + 1] = mine[k] end
end

local till = string.format('%d', math.min(b[5], math.max(b[4], ms + by)))
redis.call('HSET', basket, 'until', till)
redis.call('PEXPIREAT', basket, string.format('%d', till + 600000))
local index = {}
for k, seat in ipairs(mine) do
  redis.call('PEXPIREAT', KEYS[k + 6], till)
  index[2 * k - 1], index[2 * k] = till, seat
end
many(index, 'ZADD', held)
many(index, 'ZADD', user)
local change = ''
if #unshown > 0 then
  paint(map, unshown, all(#unshown, 1))
  change = announce(seq, log, last, us, ms,
    list('reserved', unshown) .. ',"until":' .. till .. ',"tag":"' .. string.sub(token, 1, 6) .. '"')
end
return {'held', change, redis.call('HGETALL', basket)}

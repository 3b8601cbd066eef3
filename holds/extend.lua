-- extend.lua lets a basket last longer, for its holder only, never shorter and
-- never past its cap.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    basket  of this token
-- KEYS[6]    user    index of this account
-- KEYS[7..]  hold of each seat
-- ARGV[1]    token
-- ARGV[2]    body of the basket as the caller has read it: the account's own
-- ARGV[3]    how long from now, ms
-- ARGV[4..]  each seat of it
-- Returns    {held, change, basket}: change is empty when the map said so already
--            {lost, seat…} {sold} {over} {moved} {none} {cold}: nothing changed

local seq, map, held, log, basket, user = unpack(KEYS, 1, 6)
local token, believed, by = unpack(ARGV, 1, 3)

local last, stored, old = unpack(redis.call('MGET', seq, basket, user))
if not last then return {'cold'} end
if not stored then return {'none'} end
local state, first, before, cap, body = opened(stored)
if body ~= believed then return {'moved'} end
local us, ms = clock(last)
if state == 'sold' then return {'sold'} end
if state ~= 'held' or before <= ms then return {'over'} end

local lost, missing = {'lost'}, false
for k, holder in ipairs(values(7, #KEYS)) do
  if not holder then
    missing = true
  elseif holder ~= token then
    lost[#lost + 1] = ARGV[k + 3]
  end
end
if #lost > 1 then return lost end
if missing then return {'over'} end

local mine = {unpack(ARGV, 4)}
local unshown = {}
for k, shows in ipairs(shown(map, mine)) do
  if shows ~= 1 then unshown[#unshown + 1] = mine[k] end
end

local till = string.format('%d', math.min(cap, math.max(before, ms + by)))
store(basket, state, first, till, cap, body, 'PXAT', string.format('%d', till + 600000))
for k = 7, #KEYS do redis.call('PEXPIREAT', KEYS[k], till) end
if #mine > 0 then redis.call('ZADD', held, till, table.concat(mine, ',')) end
join(user, old, ms, till, mine)
local change = ''
if #unshown > 0 then
  paint(map, unshown, all(#unshown, 1))
  change = announce(seq, log, last, us, ms,
    list('reserved', unshown) .. ',"until":' .. till .. ',"tag":"' .. string.sub(token, 1, 6) .. '"')
end
return {'held', change, redis.call('GET', basket)}

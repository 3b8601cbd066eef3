-- swap.lua gives a basket other seats, all of them or none. Its end and its cap
-- stay.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    basket  of this token
-- KEYS[6]    user    index of this account
-- KEYS[7..]  hold of each seat kept, then of each dropped, then of each added
-- ARGV[1]    token
-- ARGV[2]    body of the basket as the caller has read it: the account's own, not sealed
-- ARGV[3]    body of the basket from now on
-- ARGV[4]    seats the account may hold, tickets it has bought and all
-- ARGV[5..7] how many are kept, dropped and added
-- ARGV[8]    the seats it has had, with commas between: its entry of held
-- ARGV[9]    the seats it has from now on, likewise
-- ARGV[10..12] in how many baskets the account may hold, how many holds an hour it
--            may have before each must wait, and the first wait, ms
-- ARGV[13..] each seat kept, dropped, added
-- Returns    {held, change, basket}: change is empty when the map shows it so already
--            {taken, seat…} {lost, seat…} {cap} {bought, tickets} {many} {pace, how long to wait in ms} {sold} {over} {moved} {none} {cold}: nothing changed

local seq, map, held, log, basket, user = unpack(KEYS, 1, 6)
local token, believed, after = unpack(ARGV, 1, 3)
local kept, dropped, added = ARGV[5] + 0, ARGV[6] + 0, ARGV[7] + 0

local last, stored, old = unpack(redis.call('MGET', seq, basket, user))
if not last then return {'cold'} end
if not stored then return {'none'} end
local state, first, till, cap, body = opened(stored)
if body ~= believed then return {'moved'} end
local us, ms = clock(last)
if state == 'sold' then return {'sold'} end
if state ~= 'held' or till <= ms then return {'over'} end

local seats, holders = {unpack(ARGV, 13)}, values(7, #KEYS)
local lost, gone, missing = {'lost'}, {'taken'}, false
local has, mine = {}, false -- has: the seats the index of the account counts for this basket
for k = 1, kept + dropped do
  if holders[k] == token then mine = true end
  if holders[k] == token or not holders[k] then has[seats[k]] = true end
  if k <= kept then -- what was lost may be swapped away
    if not holders[k] then
      missing = true
    elseif holders[k] ~= token then
      lost[#lost + 1] = seats[k]
    end
  end
end
if #lost > 1 then return lost end
if missing then return {'over'} end
for k = kept + dropped + 1, #seats do
  if holders[k] then gone[#gone + 1] = seats[k] end
end
if #gone > 1 then return gone end
local a = account(old, ms, has)
local over = added > dropped and beyond(a, kept + added, tonumber(ARGV[4]))
if over then return over end
if kept + dropped == 0 then -- it had places only: this is its first hold of seats
  if not a.since or (first < a.since and ms - first < hour) then a.since = first end -- spend looks for it in the hour
  over = hurried(a, ms, ARGV[10] + 0, ARGV[11] + 0, ARGV[12] + 0)
  if over then return over end
end

local shows = shown(map, seats)
local drop, left, free, come, part, colours = {}, {}, {}, {}, {}, {}
for k = kept + 1, #seats do
  if k > kept + dropped then
    come[#come + 1] = seats[k]
    part[#part + 1], colours[#colours + 1] = seats[k], 1
  elseif has[seats[k]] then -- a hold that has just ended by itself is given back too
    drop[#drop + 1], left[#left + 1] = KEYS[k + 6], seats[k]
    if shows[k] == 1 then
      free[#free + 1] = seats[k]
      part[#part + 1], colours[#colours + 1] = seats[k], 0
    end
  end
end

store(basket, state, first, till, cap, after, 'KEEPTTL')
many(drop, 'DEL')
for k = kept + dropped + 1, #seats do redis.call('SET', KEYS[k + 6], token, 'PXAT', till) end
if dropped + added > 0 then
  if mine then redis.call('ZREM', held, ARGV[8]) end -- else it may be of a later hold
  many(left, 'ZREM', held) -- a rebuild indexes each by itself
  redis.call('ZADD', held, till, ARGV[9])
  add(a, till, ARGV[9])
  save(user, old, a)
end
if #part == 0 then return {'held', '', redis.call('GET', basket)} end
paint(map, part, colours)
local change = list('reserved', come) .. list('released', free) .. ',"tag":"' .. string.sub(token, 1, 6) .. '"'
if #come > 0 then change = change .. ',"until":' .. till end
if #free > 0 then change = change .. ',"why":"swapped"' end
return {'held', announce(seq, log, last, us, ms, change), redis.call('GET', basket)}

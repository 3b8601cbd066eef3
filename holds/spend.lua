-- spend.lua marks seats sold or unavailable, as the arbiter decided, whoever
-- holds them.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    areas   hash: places left
-- KEYS[6..]  hold of each seat sold, then of each closed, then the baskets that
--            became sold, then the index of every account that held one of the seats or
--            whose tickets are told
-- ARGV[1..4] how many sold, closed, baskets, entries of held
-- ARGV[5..]  each seat sold, each closed, each entry whose seats are all of these, then of each
--            basket which of the accounts is its own (0: it had no seats, or is not known), then of
--            each account how many tickets it has (-1: as many as it had), then area and places
--            left of each area
-- Returns    {done, change}: change is empty when nothing differed
--            {cold}: nothing changed

local seq, map, held, log, areas = unpack(KEYS, 1, 5)
local sold, closed, baskets, entries = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local count = sold + closed

local last = redis.call('GET', seq)
if not last then return {'cold'} end

local us, ms = clock(last)
local seats = {}
for k = 1, count do seats[k] = ARGV[k + 4] end
local holders, states = values(6, 5 + count), shown(map, seats)
local mark, changed, colours, booked, shut = {}, {}, {}, {}, {}
for k = 1, count do
  local value, state, part = 'sold', 2, booked
  if k > sold then value, state, part = 'closed', 3, shut end
  if holders[k] ~= value then
    mark[#mark + 1] = KEYS[k + 5]
    mark[#mark + 1] = value
  end
  if states[k] ~= state then
    changed[#changed + 1] = seats[k]
    colours[#colours + 1] = state
    part[#part + 1] = seats[k]
  end
end
local whole = {}
for k = 1, entries do whole[k] = ARGV[count + k + 4] end
local stored, indexes = values(6 + count, 5 + count + baskets), values(6 + count + baskets, #KEYS)
local owner, bought, paid = {}, {}, {} -- paid: by account, when the baskets it has just paid for were first held
for k = 1, baskets do owner[k] = ARGV[count + entries + 4 + k] + 0 end
for k = 1, #indexes do bought[k], paid[k] = ARGV[count + entries + baskets + 4 + k] + 0, {} end
local left, places = recount(areas, count + entries + baskets + #indexes + 5)

many(mark, 'MSET')
many(seats, 'ZREM', held)
many(whole, 'ZREM', held)
for k = 1, baskets do
  local state, first, till, cap, body = opened(stored[k])
  if state then store(KEYS[5 + count + k], 'sold', first, till, cap, body, 'KEEPTTL') end
  if state and state ~= 'sold' and owner[k] > 0 then table.insert(paid[owner[k]], first) end
end
local gone = set(seats)
for k, old in ipairs(indexes) do
  local a = account(old, ms, gone)
  if bought[k] >= 0 then a.bought = bought[k] end
  for _, first in ipairs(paid[k]) do -- a hold that was paid for does not count in the pace
    if a.since and first >= a.since then a.n = math.max(a.n - 1, 0) end
  end
  save(KEYS[5 + count + baskets + k], old, a)
end
many(left, 'HSET', areas)
if #changed == 0 and #left == 0 then return {'done', ''} end
paint(map, changed, colours)
return {'done', announce(seq, log, last, us, ms, list('booked', booked) .. list('closed', shut) .. places)}

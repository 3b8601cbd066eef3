-- restore.lua takes the marks of seats away: they can be held again. A live
-- hold that never was overridden stays.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    areas   hash: places left
-- KEYS[6..]  hold of each seat
-- ARGV[1]    how many seats
-- ARGV[2..]  each seat, then area and places left of each area
-- Returns    {done, change}: change is empty when nothing differed
--            {cold}: nothing changed

local seq, map, held, log, areas = unpack(KEYS, 1, 5)
local count = ARGV[1] + 0

local last = redis.call('GET', seq)
if not last then return {'cold'} end

local us, ms = clock(last)
local seats = {}
for k = 1, count do seats[k] = ARGV[k + 1] end
local holders, states = values(6, #KEYS), shown(map, seats)
local drop, free, changed, colours, released, reserved = {}, {}, {}, {}, {}, {}
for k = 1, count do
  local holder, state, part = holders[k], 0, released
  if holder == 'sold' or holder == 'closed' then
    drop[#drop + 1] = KEYS[k + 5]
  elseif holder then
    state, part = 1, reserved
  end
  if state == 0 then free[#free + 1] = seats[k] end
  if states[k] ~= state then
    changed[#changed + 1] = seats[k]
    colours[#colours + 1] = state
    part[#part + 1] = seats[k]
  end
end
local left, places = recount(areas, count + 2)

many(drop, 'DEL')
many(free, 'ZREM', held)
many(left, 'HSET', areas)
if #changed == 0 and #left == 0 then return {'done', ''} end
paint(map, changed, colours)
local why = #released > 0 and ',"why":"restored"' or ''
return {'done', announce(seq, log, last, us, ms, list('released', released) .. why .. list('reserved', reserved) .. places)}

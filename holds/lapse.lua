-- lapse.lua is the map's side of expiry: holds end by themselves, and this
-- announces that they have. Any node may run it at any time.
--
-- The clock may run ahead of the expiry of a key within one script, so a hold
-- is only looked at 5 ms after its end, and only its absence counts.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seat -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5..]  hold of each seat
-- ARGV[1..]  each seat, at most 4000
-- Returns    {done, change, entries of held dealt with}: change is empty when nothing differed
--            {cold}: nothing changed

local seq, map, held, log = unpack(KEYS, 1, 4)

local last = redis.call('GET', seq)
if not last then return {'cold'} end

local us, ms = clock()
local past = ms - 5
local seats = {unpack(ARGV)}
local ends, holders, states = redis.call('ZMSCORE', held, unpack(ARGV)), values(5, #KEYS), shown(map, seats)
local drop, late, free = {}, {}, {}
for k, seat in ipairs(seats) do
  local till, holder = tonumber(ends[k] or past + 1), holders[k]
  if till <= past then
    if not holder or holder == 'sold' or holder == 'closed' then
      drop[#drop + 1] = seat
      if not holder and states[k] == 1 then free[#free + 1] = seat end
    else -- it lasts longer than its entry says
      local real = redis.call('PEXPIRETIME', KEYS[k + 4])
      if real > till then
        late[#late + 1] = real
        late[#late + 1] = seat
      end
    end
  end
end

many(drop, 'ZREM', held)
many(late, 'ZADD', held)
local dealt = #drop + #late / 2
if #free == 0 then return {'done', '', dealt} end
paint(map, free, all(#free, 0))
return {'done', announce(seq, log, last, us, ms, list('released', free)), dealt}

-- lapse.lua is the map's side of expiry: holds end by themselves, and this
-- announces that they have. Any node may run it at any time.
--
-- The clock may run ahead of the expiry of a key within one script, so a hold
-- is only looked at 5 ms after its end, and only its absence counts.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5..]  hold of each seat of the entries, in their order
-- ARGV[1..]  entries of held: seats with commas between
-- Returns    {done, change, entries of held dealt with}: change is empty when nothing differed
--            {cold}: nothing changed

local seq, map, held, log = unpack(KEYS, 1, 4)

local last = redis.call('GET', seq)
if not last then return {'cold'} end

local us, ms = clock(last)
local past = ms - 5
local seats, entry = {}, {} -- entry[k] is where seats[k] is from
for e, text in ipairs(ARGV) do
  for seat in string.gmatch(text, '%d+') do
    seats[#seats + 1], entry[#entry + 1] = seat, e
  end
end
local ends, holders, states = redis.call('ZMSCORE', held, unpack(ARGV)), values(5, #KEYS), shown(map, seats)
local stays, late, free, told = {}, {}, {}, {}
for k, seat in ipairs(seats) do
  local till, holder = tonumber(ends[entry[k]] or past + 1), holders[k]
  if till > past then
    stays[entry[k]] = true
  elseif not holder then
    if states[k] == 1 and not told[seat] then free[#free + 1] = seat end
    told[seat] = true
  elseif holder ~= 'sold' and holder ~= 'closed' then
    local real = redis.call('PEXPIRETIME', KEYS[k + 4])
    if real > till then -- it lasts longer than its entry says, or is a later hold
      late[#late + 1] = real
      late[#late + 1] = seat
    else
      stays[entry[k]] = true
    end
  end
end
local drop = {}
for e, text in ipairs(ARGV) do
  if not stays[e] then drop[#drop + 1] = text end
end

many(drop, 'ZREM', held)
many(late, 'ZADD', held)
if #free == 0 then return {'done', '', #drop} end
paint(map, free, all(#free, 0))
return {'done', announce(seq, log, last, us, ms, list('released', free) .. ',"why":"lapsed"'), #drop}

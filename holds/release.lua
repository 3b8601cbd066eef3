-- release.lua gives back what a basket still holds, for its holder only.
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
-- ARGV[3..]  each seat of it
-- Returns    {done, change}: change is empty when no seat of it was shown as held
--            {sold} {moved} {none} {cold}: nothing changed

local seq, map, held, log, basket, user = unpack(KEYS, 1, 6)
local token, believed = ARGV[1], ARGV[2]

local last, stored, old = unpack(redis.call('MGET', seq, basket, user))
if not last then return {'cold'} end
if not stored then return {'none'} end
local state, first, till, cap, body = opened(stored)
if body ~= believed then return {'moved'} end
if state == 'released' then return {'done', ''} end
if state ~= 'held' then return {'sold'} end

local us, ms = clock(last)
local mine = {unpack(ARGV, 3)}
local shows = shown(map, mine)
local drop, free, shownHeld = {}, {}, {}
for k, holder in ipairs(values(7, #KEYS)) do
  if holder == token then drop[#drop + 1] = KEYS[k + 6] end
  if holder == token or not holder then -- a hold that has just ended by itself is given back too
    free[#free + 1] = mine[k]
    if shows[k] == 1 then shownHeld[#shownHeld + 1] = mine[k] end
  end
end

store(basket, 'released', first, till, cap, body, 'KEEPTTL')
many(drop, 'DEL')
if #free == #mine then redis.call('ZREM', held, table.concat(mine, ',')) end -- else it may be of a later hold
many(free, 'ZREM', held) -- a rebuild indexes each by itself
leave(user, old, ms, set(free))
if #shownHeld == 0 then return {'done', ''} end
paint(map, shownHeld, all(#shownHeld, 0))
return {'done', announce(seq, log, last, us, ms,
  list('released', shownHeld) .. ',"why":"given_back","tag":"' .. string.sub(token, 1, 6) .. '"')}

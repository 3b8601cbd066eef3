-- release.lua gives back what a basket still holds, for its holder only.
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
-- ARGV[3]    seats the caller believes the basket has, with commas between
-- ARGV[4..]  each seat
-- Returns    {done, change}: change is empty when no seat of it was shown as held
--            {sold} {moved} {foreign} {none} {cold}: nothing changed

local seq, map, held, log, basket, user = unpack(KEYS, 1, 6)
local token, account, seats = unpack(ARGV, 1, 3)

local last = redis.call('GET', seq)
if not last then return {'cold'} end
local b = redis.call('HMGET', basket, 'user', 'state', 'seats')
if not b[1] then return {'none'} end
if b[1] ~= account then return {'foreign'} end
if b[2] == 'released' then return {'done', ''} end
if b[2] ~= 'held' then return {'sold'} end
if b[3] ~= seats then return {'moved'} end

local us, ms = clock()
local mine = {unpack(ARGV, 4)}
local state = shown(map, mine)
local drop, free, shownHeld = {}, {}, {}
for k, holder in ipairs(values(7, #KEYS)) do
  if holder == token then drop[#drop + 1] = KEYS[k + 6] end
  if holder == token or not holder then -- a hold that has just ended by itself is given back too
    free[#free + 1] = mine[k]
    if state[k] == 1 then shownHeld[#shownHeld + 1] = mine[k] end
  end
end

redis.call('HSET', basket, 'state', 'released')
many(drop, 'DEL')
many(free, 'ZREM', held)
many(free, 'ZREM', user)
if #shownHeld == 0 then return {'done', ''} end
paint(map, shownHeld, all(#shownHeld, 0))
return {'done', announce(seq, log, last, us, ms, list('released', shownHeld))}

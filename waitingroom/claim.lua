-- claim.lua lets somebody in whose turn it is.
--
-- A token of the bucket goes to the lowest number among those who are here and
-- those who were called so lately that they may still come. So the order is kept,
-- somebody who slept through their turn is the first when they are back, and
-- nobody who is absent keeps a token from others for more than four seconds. Who is
-- suspected is told what the last of those who are here would be, and counts for
-- nobody else.
--
-- KEYS    room, q, tar, adm, try (zset: who was called and has asked -> number), seen
--         (zset: the same -> when they asked last)
-- ARGV    id, number of a signed place or 0, version, which room
-- Returns {inside, until, 1 when it is since now}
--         {soon, how many of those who are here come first}
--         {wait, number, state}: not called yet, or nobody is let in for the moment; before
--         a draw the number is 0
--         {none}: no place; {over}; {cold}; {behind}

local room, q, tar, adm, try, seen = unpack(KEYS)
local id, known = ARGV[1], tonumber(ARGV[2])

local r = read(room)
if not r then return {'cold'} end
if behind(r) then return {'behind'} end
local now = clock()
local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > now then return {'inside', till, 0} end
if r.state == 'over' then return {'over'} end
if r.state == 'draw' then return {'wait', 0, r.state} end
local own = line(q, tar, id)
local number = place(room, r, own, adm, id, known)
if not number and r.state == 'closed' then return {'wait', 0, r.state} end
if not number then return {'none'} end
if r.state ~= 'open' or number > r.serving then return {'wait', number, r.state} end

forget(try, seen, now)
if own == tar then return {'soon', redis.call('ZCARD', try)} end
redis.call('ZADD', try, number, id)
redis.call('ZADD', seen, now, id)
local ahead = redis.call('ZRANK', try, id)
if number > r.was then
  ahead = redis.call('ZCOUNT', try, '-inf', r.was) + redis.call('ZCOUNT', q, '(' .. r.was, '(' .. number)
end
local tokens = fill(r, now)
if ahead >= math.min(math.floor(tokens), math.min(r.cap, seated(r)) - inside(adm, now), r.free) then return {'soon', ahead} end

till = now + r.session
redis.call('ZREM', q, id)
redis.call('ZREM', try, id)
redis.call('ZREM', seen, id)
redis.call('ZADD', adm, till, id)
redis.call('HSET', room, 'tokens', string.format('%.3f', tokens - 1), 'at', now)
return {'inside', till, 1}

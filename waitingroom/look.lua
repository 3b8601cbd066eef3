-- look.lua reads what everybody who waits is told.
--
-- KEYS    room, q, adm, pre
-- ARGV    which room
-- Returns {state, now, serving, last, rate, waiting, inside, free, version, since, pace, slowed, 1 when it does not say which room it is}:
--         waiting are those not called yet, and those on the list of a draw that is not drawn; since when the room is there; slowed is why the
--         pace is below the rate, or seats when more are inside than will find one
--         {cold}

local room, q, adm, pre = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local r = read(room)
if not r then return {'cold'} end
local now = clock()
local list, waiting = 0, 0
if not r.placed then list = redis.call('HLEN', pre) end
if list > 0 then -- without those who have left it
  waiting = math.max(0, list - redis.call('ZCARD', adm) + tonumber(redis.call('HGET', room, 'strays') or 0))
end
if r.state ~= 'draw' then -- numbers up to the size of the list are ranks, which are being given
  waiting = waiting + redis.call('ZCOUNT', q, '(' .. math.max(r.serving, list), '+inf')
end
local within, slowed = inside(adm, now), ''
if r.factor < 1 then
  slowed = redis.call('HGET', room, 'why')
elseif r.state == 'open' and waiting > 0 and within >= seated(r) then
  slowed = 'seats'
end
return {r.state, now, r.serving, r.last, r.rate, waiting, within, r.free, r.version, r.since, r.pace, slowed, r.named and 0 or 1}

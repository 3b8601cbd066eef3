-- join.lua gives somebody a place, or says which one they have.
--
-- KEYS    room, q (zset: who waits -> number), adm (zset: who is or was inside ->
--         until), pre (hash: tickets of a draw -> nonce)
-- ARGV    id, nonce, number of a signed place or 0
-- Returns {draw, nonce}: on the list of the draw
--         {place, number}
--         {inside, until}
--         {over}; {cold}

local room, q, adm, pre = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, nonce, known = ARGV[1], ARGV[2], tonumber(ARGV[3])

local r = read(room)
if not r then return {'cold'} end
if r.state == 'over' then return {'over'} end
if r.state == 'draw' then
  if redis.call('HSETNX', pre, id, nonce) == 0 then nonce = redis.call('HGET', pre, id) end
  return {'draw', nonce}
end

local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > clock() then return {'inside', till} end
local number = place(q, adm, id, known)
if not number then
  number = r.last + 1
  redis.call('ZADD', q, number, id)
end
if number > r.last then redis.call('HSET', room, 'last', number) end
return {'place', number}

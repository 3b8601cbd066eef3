-- join.lua gives somebody a place, or says which one they have.
--
-- KEYS    room, q (zset: who waits -> number), adm (zset: who is or was inside,
--         or has left -> until), pre (hash: tickets of a draw -> nonce), new (list: what became of
--         that list and is not in Postgres yet)
-- ARGV    id, nonce, number of a signed place or 0, version
-- Returns {draw, nonce, 1 when it is new}: on the list of the draw, which may be closed
--         {place, number, 1 when it is new}
--         {inside, until}
--         {over}; {cold}; {behind}

local room, q, adm, pre, new = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, nonce, known = ARGV[1], ARGV[2], tonumber(ARGV[3])

local r = read(room)
if not r then return {'cold'} end
if behind(r) then return {'behind'} end
if r.state == 'draw' then
  local had = redis.call('HGET', pre, id)
  local back = redis.call('ZREM', adm, id) == 1 -- had left
  if had and not back then return {'draw', had, 0} end
  if not had then redis.call('HSET', pre, id, nonce) end
  redis.call('RPUSH', new, '+' .. id .. (had or nonce))
  return {'draw', had or nonce, 1}
end

local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > clock() then return {'inside', till} end
if r.state == 'over' then return {'over'} end
local number = place(room, r, q, adm, id, known)
if number then return {'place', number, 0} end
if r.state == 'closed' and till == 0 then
  local listed = redis.call('HGET', pre, id)
  if listed then return {'draw', listed, 0} end
end
number = r.last + 1
redis.call('ZADD', q, number, id)
redis.call('HSET', room, 'last', number)
return {'place', number, 1}

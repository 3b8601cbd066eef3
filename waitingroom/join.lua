-- join.lua gives somebody a place, or says which one they have.
--
-- KEYS    room, q (zset: who waits -> number), adm (zset: who is or was inside,
--         or has left -> until), pre (hash: tickets of a draw -> nonce), new (list: what became of
--         that list and is not in Postgres yet)
-- ARGV    id, nonce, number of a signed place or 0
-- Returns {draw, nonce, 1 when it is new}: on the list of the draw
--         {place, number, 1 when it is new}
--         {inside, until}
--         {over}; {cold}

local room, q, adm, pre, new = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, nonce, known = ARGV[1], ARGV[2], tonumber(ARGV[3])

local r = read(room)
if not r then return {'cold'} end
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
local number, fresh = place(q, adm, id, known), 0
if not number then
  number, fresh = r.last + 1, 1
  redis.call('ZADD', q, number, id)
end
if number > r.last then redis.call('HSET', room, 'last', number) end
return {'place', number, fresh}

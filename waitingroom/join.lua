-- join.lua gives somebody a place, or says which one they have. What is asked of who
-- joins is asked only of who has none.
--
-- KEYS    room, q (zset: who waits -> number), tar, adm (zset: who is or was inside,
--         or has left -> until), pre (hash: tickets of a draw -> nonce), new (list: what became of
--         that list and is not in Postgres yet), codes (hash: codes that were used ->
--         by whom), used (list: those of it that are not in Postgres yet), proof (string:
--         this one was used)
-- ARGV    id, nonce, number of a signed place or 0, 1 when something is asked for, a code or
--         0, for how many ms a proof must be remembered or 0, version, which room
-- Returns {draw, nonce, 1 when it is new}: on the list of the draw, which may be closed
--         {place, number, 1 when it is new}
--         {inside, until}
--         {asked}: nothing is brought; {used}: the code, by somebody else; {spent}: the proof
--         {over}; {cold}; {behind}

local room, q, tar, adm, pre, new, codes, used, proof = unpack(KEYS)
local id, nonce, known, asks, code, life = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], tonumber(ARGV[6])

-- enter takes what was brought, and returns why that will not do.
local function enter()
  if not asks then return end
  if code ~= '0' then
    local by = redis.call('HGET', codes, code)
    if by and by ~= id then return {'used'} end
    if not by then
      redis.call('HSET', codes, code, id)
      redis.call('RPUSH', used, code .. ' ' .. id)
    end
  elseif life == 0 then
    return {'asked'}
  elseif not redis.call('SET', proof, id, 'NX', 'PX', life) then
    return {'spent'}
  end
end

local r = read(room)
if not r then return {'cold'} end
if behind(r) then return {'behind'} end
if r.state == 'draw' then
  local had = redis.call('HGET', pre, id)
  local back = redis.call('ZSCORE', adm, id) -- had left
  if had and not back then return {'draw', had, 0} end
  local refused = enter()
  if refused then return refused end
  redis.call('ZREM', adm, id)
  if not had then redis.call('HSET', pre, id, nonce) end
  redis.call('RPUSH', new, '+' .. id .. (had or nonce))
  return {'draw', had or nonce, 1}
end

local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > clock() then return {'inside', till} end
if r.state == 'over' then return {'over'} end
local own = line(q, tar, id)
local number = place(room, r, own, adm, id, known)
if number then return {'place', number, 0} end
if r.state == 'closed' and till == 0 then
  local listed = redis.call('HGET', pre, id)
  if listed then return {'draw', listed, 0} end
end
local refused = enter()
if refused then return refused end
number = r.last + 1
redis.call('ZADD', own, number, id)
redis.call('HSET', room, 'last', number)
return {'place', number, 1}

-- snapshot.lua reads an event's whole map in one step.
--
-- KEYS[1]  seq    number of the last change; absent: the event is cold
-- KEYS[2]  map    two bits a seat
-- KEYS[3]  areas  hash: area -> places left
-- Returns  {number, map, {area, places, …}}, or nothing when cold.

local seq, map, areas = KEYS[1], KEYS[2], KEYS[3]

local n = redis.call('GET', seq)
if not n then return {} end
return {n, redis.call('GET', map) or '', redis.call('HGETALL', areas)}

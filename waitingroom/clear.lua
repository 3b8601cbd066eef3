-- clear.lua removes all there is of a room. Of another room of the event, which is there
-- by now, it removes nothing.
--
-- KEYS    every key of a room, first the room
-- ARGV    which room, or 0 for any
-- Returns {removed, how many keys}; {other}

local is = redis.call('HGET', KEYS[1], 'room') or '0'
if ARGV[1] ~= '0' and is ~= '0' and ARGV[1] ~= is then return {'other'} end
return {'removed', redis.call('UNLINK', unpack(KEYS))}

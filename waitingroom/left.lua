-- left.lua tells a room how many seats are free.
--
-- KEYS    room
-- ARGV    how many
-- Returns {told}; {cold}

if not read(KEYS[1]) then return {'cold'} end
redis.call('HSET', KEYS[1], 'free', ARGV[1])
return {'told'}

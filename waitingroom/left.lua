-- left.lua tells a room how many seats are free, and how many are held.
--
-- KEYS    room
-- ARGV    how many, and how many, which room
-- Returns {told}; {cold}

if not read(KEYS[1]) then return {'cold'} end
redis.call('HSET', KEYS[1], 'free', ARGV[1], 'held', ARGV[2])
return {'told'}

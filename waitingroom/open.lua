-- open.lua makes a room that is cold. One that is there stays as it is.
--
-- The bucket is empty: what it had may have been spent. Only one that never was
-- there begins full.
--
-- KEYS    room
-- ARGV    version, state, rate, burst, cap, session in ms, free, serving, last, 1 when it begins full,
--         1 when it is drawn and whoever was has a place, factor of the rate it begins with, why that is below 1,
--         how many have left and were on no list, which room
-- Returns {opened}; {there}

local room = KEYS[1]

if read(room) then return {'there'} end
local version, state, rate, burst, cap, session, free, serving, last, full, placed, factor, why, strays, which = unpack(ARGV)
redis.call('HSET', room, 'version', version, 'rate', rate, 'burst', burst, 'cap', cap, 'session', session, 'free', free, 'serving', serving,
  'last', last, 'tokens', full == '1' and burst or '0', 'at', clock(), 'was', serving, 'later', serving, 'turned', 0, 'placed', placed, 'since', clock(), 'given', last,
  'factor', factor, 'bad', 2, 'why', why, 'strays', strays, 'room', which,
  'state', state)
return {'opened'}

-- tell.lua makes a room what Postgres says of it, unless it has been told what is
-- newer. How far it has called only rises. What the bucket has got by the old rate
-- it keeps, as far as the new burst allows.
--
-- KEYS    room
-- ARGV    version, serving, state, rate, burst, cap, session in ms
-- Returns {told}; {cold}

local room = KEYS[1]
local version, serving = tonumber(ARGV[1]), tonumber(ARGV[2])

local r = read(room)
if not r then return {'cold'} end
local now = clock()
local tokens = fill(r, now)
if serving > r.serving then redis.call('HSET', room, 'serving', serving) end
if version <= r.version then return {'told'} end
redis.call('HSET', room, 'version', version, 'state', ARGV[3], 'rate', ARGV[4], 'burst', ARGV[5], 'cap', ARGV[6], 'session', ARGV[7],
  'tokens', string.format('%.3f', math.min(tokens, tonumber(ARGV[5]))), 'at', now)
return {'told'}

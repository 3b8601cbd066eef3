-- tell.lua makes a room what Postgres says of it, unless it has been told what is
-- newer. How far it has called, and which numbers are given, only rises. What the
-- bucket has got by the old rate it keeps, as far as the new burst allows.
--
-- A room whose list is not closed here, or whose draw is not here, is not told that
-- it is: first both must be.
--
-- KEYS    room
-- ARGV    version, serving, last, state, rate, burst, cap, session in ms, 1 when it is drawn, which room
-- Returns {told}; {cold}; {behind}: the list or the draw is missing

local room = KEYS[1]
local version, serving, last, state, drawn = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[9] == '1'

local r = read(room)
if not r then return {'cold'} end
local now = clock()
local tokens = fill(r, now)
if serving > r.serving then redis.call('HSET', room, 'serving', serving) end
if last > r.last then redis.call('HSET', room, 'last', last) end
if ARGV[10] ~= '0' and version == r.version then redis.call('HSETNX', room, 'room', ARGV[10]) end -- one of a release that did not say which it is
if version <= r.version then return {'told'} end
if r.state == 'draw' and state ~= 'draw' or drawn and not r.placed then return {'behind'} end
if ARGV[10] ~= '0' then redis.call('HSET', room, 'room', ARGV[10]) end
redis.call('HSET', room, 'version', version, 'state', state, 'rate', ARGV[5], 'burst', ARGV[6], 'cap', ARGV[7], 'session', ARGV[8],
  'tokens', string.format('%.3f', math.min(tokens, tonumber(ARGV[6]))), 'at', now)
return {'told'}

-- find.lua says what somebody has, and changes nothing.
--
-- KEYS    room, q, tar, adm, pre
-- ARGV    id, which room
-- Returns {draw, nonce}; {place, number}; {inside, until}; {none}; {cold}

local room, q, tar, adm, pre = unpack(KEYS)
local id = ARGV[1]

local r = read(room)
if not r then return {'cold'} end
local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > clock() then return {'inside', till} end
local number = numbered(line(q, tar, id), id)
if number then return {'place', number} end
if till > 0 or r.state ~= 'draw' and r.state ~= 'closed' then return {'none'} end -- has left, or the draw is over
local nonce = redis.call('HGET', pre, id)
if nonce then return {'draw', nonce} end
return {'none'}

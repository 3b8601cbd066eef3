-- find.lua says what somebody has, and changes nothing.
--
-- KEYS    room, q, adm, pre
-- ARGV    id
-- Returns {draw, nonce}; {place, number}; {inside, until}; {none}; {cold}

local room, q, adm, pre = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id = ARGV[1]

if not read(room) then return {'cold'} end
local till = tonumber(redis.call('ZSCORE', adm, id) or 0)
if till > clock() then return {'inside', till} end
local number = tonumber(redis.call('ZSCORE', q, id) or nil)
if number then return {'place', number} end
local nonce = redis.call('HGET', pre, id)
if nonce then return {'draw', nonce} end
return {'none'}

-- take.lua holds every seat asked for, or none.
--
-- KEYS[1]    seq     number of the last change
-- KEYS[2]    basket  of this token: <state> <first> <until> <cap> <body>
-- KEYS[3]    user    index of this account: see account.lua
-- KEYS[4..]  hold of each seat, then
--            map     the map as announced
--            held    zset: seats of a hold -> until
--            log     stream of changes
--            areas   hash: places left; only when places are asked for
--            rev     zset: passes that are over before their time -> until; only with a pass
--            adm     zset: who is or was let in -> until; only with a pass
-- ARGV[1]    body of the basket
-- ARGV[2]    what else only a take that is granted needs, in MessagePack, since a refusal
--            costs less for every argument less: token, how long to hold, how long at
--            most and how long to remember the basket, in ms; seats the account may
--            hold, in how many baskets, how many holds an hour it may have before each
--            must wait, and the first wait, ms; seats with commas between, and the words
--            that BITFIELD is told
-- ARGV[3]    places by area as JSON; only when some are asked for, or empty with a pass
-- ARGV[4..6] a pass: its id, who has it and until when in ms; only with a pass. Whom adm
--            has lost is put back
-- Returns    {held, change, first}: change is empty when no seat was asked for
--            {there, now in ms, basket}: the token has one, nothing changed
--            {taken, k…}: the k-th seats asked for; {area, name}; {cap}; {bought, tickets};
--            {many}; {pace, how long to wait in ms}; {revoked}; {cold}: nothing changed

local seq, basket, user, places, pass = KEYS[1], KEYS[2], KEYS[3], ARGV[3], ARGV[4]
if places == '' then places = nil end
local tail = #KEYS - (places and 3 or 2) - (pass and 2 or 0) -- of KEYS, behind the holds
local count = tail - 4

local got = redis.call('MGET', unpack(KEYS, 1, tail - 1))
local last, index = got[1], got[3]
if not last then return {'cold'} end
if got[2] then return {'there', select(2, clock()), got[2]} end

if pass and redis.call('ZSCORE', KEYS[#KEYS - 1], pass) then return {'revoked'} end

local gone
for k = 4, tail - 1 do
  if got[k] then
    gone = gone or {'taken'}
    gone[#gone + 1] = k - 4
  end
end
if gone then return gone end

local wanted = count
if places then
  for area, quantity in pairs(cjson.decode(places)) do
    if tonumber(redis.call('HGET', KEYS[tail + 3], area) or 0) < quantity then return {'area', area} end
    wanted = wanted + quantity
  end
end

local rest, token, hold, most, memory, limit, baskets, hourly, pause, seats = cmsgpack.unpack_limit(ARGV[2], 9, 0)
local us, ms = clock(last)
local till, cap = string.format('%d', ms + hold), string.format('%d', ms + most)
local change, mine = ''
if index then
  mine = account(index, ms, {})
  if count == 0 then mine.seats = 0 end -- places are not held
  local over = beyond(mine, wanted, limit)
  if over then return over end
  if count > 0 then
    over = hurried(mine, ms, baskets, hourly, pause)
    if over then return over end
    add(mine, till, seats)
  end
elseif wanted > limit then
  return {'cap'}
end

if pass and not redis.call('ZSCORE', KEYS[#KEYS], ARGV[5]) then redis.call('ZADD', KEYS[#KEYS], ARGV[6], ARGV[5]) end
if count > 0 then
  redis.call('BITFIELD', KEYS[tail], select(2, cmsgpack.unpack_limit(ARGV[2], 4 * count, rest)))
  for k = 4, tail - 1 do
    redis.call('SET', KEYS[k], token, 'PXAT', till)
  end
  redis.call('ZADD', KEYS[tail + 1], till, seats)
  if mine then
    save(user, index, mine)
  else
    redis.call('SET', user, 'p' .. ms .. ',1,' .. ms .. ' ' .. till .. ':' .. seats, 'PX', hold > hour and hold or hour)
  end
  change = announce(seq, KEYS[tail + 2], last, us, ms,
    ',"reserved":[' .. seats .. '],"until":' .. till .. ',"tag":"' .. string.sub(token, 1, 6) .. '"')
end
redis.call('SET', basket, 'held ' .. ms .. ' ' .. till .. ' ' .. cap .. ' ' .. ARGV[1], 'PX', memory)
return {'held', change, ms}

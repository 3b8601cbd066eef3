-- rebuild.lua makes an event's keys anew from what Postgres says, keeping every
-- live hold. Its number is above every number anybody has.
--
-- KEYS[1]    seq     number of the last change, written last: until then the event is cold
-- KEYS[2]    map     the map as announced
-- KEYS[3]    held    zset: seats of a hold -> until
-- KEYS[4]    log     stream of changes
-- KEYS[5]    areas   hash: places left
-- KEYS[6]    reset   number of the last reset
-- KEYS[7..]  hold of every seat of the event, then basket of each booking and index of its
--            account, then index of each account that has bought
-- ARGV[1]    position: a number somebody has, or 0
-- ARGV[2]    a letter for every seat: 0 for sale, 2 sold, 3 closed
-- ARGV[3..4] how many bookings, and accounts that have bought
-- ARGV[5..]  of each booking: token, seats, body of its basket, first, until, cap; then of each account
--            the tickets it has; then area and places left of each area
-- Returns    {done, change}: change is empty when somebody rebuilt it already

local seq, map, held, log, areas, reset = unpack(KEYS, 1, 6)
local position, letters, bookings, buyers = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local hold = 7 -- seat i is KEYS[hold + i]

local last = redis.call('GET', seq)
if last and tonumber(redis.call('GET', reset) or 0) > position then return {'done', ''} end

local us, ms = clock()
local newest = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
local before = last or newest and string.match(newest[1], '^%d+') or '0'
-- Ten seconds above what is known: who calls may not be the one who saw most of
-- a history that was lost, and no number of it may be given again.
local n = math.max(us + 1, math.max(before, position) + 10000000)
numbered(string.format('%.0f', n))

-- Seats: the truth wins over marks, live holds win over silence.
local mark, drop, holders, states = {}, {}, {}, {}
for i, value in ipairs(values(hold, hold + #letters - 1)) do
  i = i - 1
  local state = string.byte(letters, i + 1) - 48
  local want = state == 2 and 'sold' or state == 3 and 'closed'
  states[i] = state
  if want then
    if value ~= want then
      mark[#mark + 1] = KEYS[hold + i]
      mark[#mark + 1] = want
    end
  elseif value == 'sold' or value == 'closed' then
    drop[#drop + 1] = KEYS[hold + i]
  elseif value then
    holders[i] = value
    states[i] = 1
  end
end

-- Bookings: what they hold in Postgres they hold here, unless somebody else
-- does or they were given back.
local baskets = {}
local stored = values(hold + #letters, #KEYS) -- basket and index in turn, then indexes
for b = 1, bookings do
  local token, seats, body, first, till, cap = unpack(ARGV, 6 * b - 1, 6 * b + 4)
  local at = hold + #letters + 2 * b - 2
  local state, _, before, was = opened(stored[2 * b - 1])
  till = math.max(till, before or 0)
  cap = string.format('%d', math.max(cap, was or 0)) -- all holds may have been extended, and Postgres not know it yet
  if till > tonumber(ms) and (not state or state == 'held') then
    local mine = {}
    for seat in string.gmatch(seats, '%d+') do
      local i = tonumber(seat)
      if states[i] == 0 or holders[i] == token then
        holders[i] = token
        states[i] = 1
        mine[#mine + 1] = seat
      end
    end
    baskets[#baskets + 1] = {key = KEYS[at], user = KEYS[at + 1], token = token, seats = mine, ends = till,
      first = first, till = string.format('%d', till), cap = cap, body = body}
  end
end

many(mark, 'MSET')
many(drop, 'DEL')
for k = 1, buyers do
  local old = stored[2 * bookings + k]
  local a = account(old, ms, {})
  a.bought = tonumber(ARGV[6 * bookings + 4 + k])
  save(KEYS[hold + #letters + 2 * bookings + k - 1], old, a)
end
for _, b in ipairs(baskets) do
  for _, i in ipairs(b.seats) do
    redis.call('SET', KEYS[hold + i], b.token, 'PXAT', b.till)
  end
  store(b.key, 'held', b.first, b.till, b.cap, b.body, 'PXAT', string.format('%d', b.ends + 600000))
  -- MGET: of another type is as if it were not there
  join(b.user, redis.call('MGET', b.user)[1], ms, b.till, b.seats)
end

local index = {}
for i in pairs(holders) do
  index[#index + 1] = redis.call('PEXPIRETIME', KEYS[hold + i])
  index[#index + 1] = i
end
redis.call('DEL', held, areas)
many(index, 'ZADD', held)

local bytes = {}
for i = 0, #letters - 1, 4 do
  bytes[#bytes + 1] = string.char(states[i] + 4 * (states[i + 1] or 0) + 16 * (states[i + 2] or 0) + 64 * (states[i + 3] or 0))
end
redis.call('SET', map, table.concat(bytes))
local left = {unpack(ARGV, 6 * bookings + buyers + 5)}
many(left, 'HSET', areas)

local id = string.format('%d', n)
local change = '{"n":' .. id .. ',"prev":' .. before .. ',"at":' .. ms .. ',"reset":true}'
redis.call('XADD', log, 'MINID', '~', string.format('%d', us - 120000000), id, 'c', change)
redis.call('SET', reset, id)
redis.call('SET', seq, id)
return {'done', change}

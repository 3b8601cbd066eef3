-- account.lua stands before every script that counts what an account has,
-- behind number.lua. It runs nothing by itself.
--
-- The index of an account is words with a space between two:
--
--	b<n>                    tickets it has bought; such an index has no end
--	p<since>,<n>,<last>     its pace: n holds since then, and when the last one was
--	<until>:<seat>,<seat>…  one of its live holds
--
-- It ends with the last of its holds and an hour after the pace began.

local hour = 3600000

-- account reads an index: tickets bought, pace, and the holds that last, the
-- seats in minus left out, with how many seats that are and when the last ends.
local function account(index, ms, minus)
  local a = {bought = 0, n = 0, holds = {}, seats = 0, latest = ''}
  if not index then return a end
  a.bought = tonumber(string.match(index, '^b(%d+)') or 0)
  local since, n, last = string.match(index, 'p(%d+),(%d+),(%d+)')
  if since and ms - since < hour then a.since, a.n, a.last = since, tonumber(n), last end
  for till, seats in string.gmatch(index, '(%d+):([%d,]+)') do
    local kept = {}
    local lasts = #till == #ms and till >= ms
    for seat in string.gmatch(lasts and seats or '', '%d+') do
      if not minus[seat] then kept[#kept + 1] = seat end
    end
    if #kept > 0 then
      a.holds[#a.holds + 1] = till .. ':' .. table.concat(kept, ',')
      a.seats = a.seats + #kept
      if till > a.latest then a.latest = till end
    end
  end
  return a
end

-- add gives an account one hold more.
local function add(a, till, seats)
  a.holds[#a.holds + 1] = till .. ':' .. seats
  if till > a.latest then a.latest = till end
end

-- beyond says which cap of seats and tickets an account would exceed with so
-- many more, nil when none.
local function beyond(a, wanted, limit)
  if a.bought > 0 and a.bought + wanted > limit then return {'bought', a.bought} end
  if a.bought + a.seats + wanted > limit then return {'cap'} end
end

-- paced notes one hold more of an account in its pace, or says how long it must
-- wait for it: with every hold above those of an hour twice as long as before,
-- at most twenty times the first wait. Its hour begins with its first hold.
local function paced(a, ms, hourly, pause)
  if not a.since then a.since = ms end
  if a.n >= hourly then
    local left = a.last + pause * math.min(2 ^ (a.n - hourly), 20) - ms
    if left > 0 then return left end
  end
  a.n, a.last = a.n + 1, ms
end

-- hurried says which cap a hold more would exceed: how many an account may have,
-- or how fast one may follow another. nil when none, and then it is in its pace.
local function hurried(a, ms, baskets, hourly, pause)
  if #a.holds >= baskets then return {'many'} end
  local wait = paced(a, ms, hourly, pause)
  if wait then return {'pace', wait} end
end

-- save makes an index what account read; old is what it was.
local function save(user, old, a)
  local words, ends = {}, a.latest
  if a.bought > 0 then words[1] = 'b' .. a.bought end
  if a.n > 0 then
    words[#words + 1] = 'p' .. a.since .. ',' .. a.n .. ',' .. a.last
    local over = string.format('%d', a.since + hour)
    if over > ends then ends = over end
  end
  for _, hold in ipairs(a.holds) do words[#words + 1] = hold end
  local index = table.concat(words, ' ')
  if index == old then return end
  if a.bought > 0 then
    redis.call('SET', user, index)
  elseif index ~= '' then
    redis.call('SET', user, index, 'PXAT', ends)
  elseif old then
    redis.call('DEL', user)
  end
end


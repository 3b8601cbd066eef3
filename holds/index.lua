-- index.lua stands before every script that changes what an account holds,
-- behind account.lua. It runs nothing by itself.

-- write makes an index what living read; old is what it was.
local function write(user, old, holds, latest)
  local index = table.concat(holds, ' ')
  if #holds == 0 then
    if old then redis.call('DEL', user) end
  elseif index ~= old then
    redis.call('SET', user, index, 'PXAT', latest)
  end
end

local function set(members)
  local out = {}
  for _, member in ipairs(members) do out[member] = true end
  return out
end

-- leave takes a set of seats out of an index.
local function leave(user, old, ms, gone)
  local holds, _, latest = living(old, ms, gone)
  write(user, old, holds, latest)
end

-- join gives an index one hold more, or seats of it another end.
local function join(user, old, ms, till, seats)
  if #seats == 0 then return end
  local holds, _, latest = living(old, ms, set(seats))
  holds[#holds + 1] = till .. ':' .. table.concat(seats, ',')
  write(user, old, holds, till > latest and till or latest)
end


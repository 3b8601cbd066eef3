-- index.lua stands before every script that changes what an account holds,
-- behind account.lua. It runs nothing by itself.

local function set(members)
  local out = {}
  for _, member in ipairs(members) do out[member] = true end
  return out
end

-- leave takes a set of seats out of an index.
local function leave(user, old, ms, gone)
  save(user, old, account(old, ms, gone))
end

-- join gives an index one hold more, or seats of it another end.
local function join(user, old, ms, till, seats)
  if #seats == 0 then return end
  local a = account(old, ms, set(seats))
  add(a, till, table.concat(seats, ','))
  save(user, old, a)
end


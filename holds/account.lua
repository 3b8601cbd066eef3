-- account.lua stands before every script that counts what an account holds,
-- behind number.lua. It runs nothing by itself.
--
-- The index of an account is its live holds, each as <until>:<seat>,<seat>…
-- with a space between two. It ends with the last of them.

-- living reads an index: its holds that last, the seats in minus left out, how
-- many seats that are, and when the last of them ends.
local function living(index, ms, minus)
  local holds, count, latest = {}, 0, ''
  for till, seats in string.gmatch(index or '', '(%d+):([%d,]+)') do
    local kept = {}
    local lasts = #till == #ms and till >= ms
    for seat in string.gmatch(lasts and seats or '', '%d+') do
      if not minus[seat] then kept[#kept + 1] = seat end
    end
    if #kept > 0 then
      holds[#holds + 1] = till .. ':' .. table.concat(kept, ',')
      count = count + #kept
      if till > latest then latest = till end
    end
  end
  return holds, count, latest
end


-- seats.lua stands before every script that works on lists of seats, behind
-- number.lua: the words those share. It runs nothing by itself.

-- spot names seat i to BITFIELD, so that the string reads as a seatmap.Map.
local function spot(i)
  local low = i % 4
  return '#' .. (i - low - low + 3)
end

-- list is the part of a change's body that names seats.
local function list(name, seats)
  if #seats == 0 then return '' end
  return ',"' .. name .. '":[' .. table.concat(seats, ',') .. ']'
end

-- many runs a command with all members behind its first arguments, in pieces
-- that fit Lua's stack and keep pairs together.
local function many(members, ...)
  for from = 1, #members, 4000 do
    local args = {...}
    for k = from, math.min(from + 3999, #members) do args[#args + 1] = members[k] end
    redis.call(unpack(args))
  end
end

-- values reads KEYS[first] to KEYS[last]; a missing one is false.
local function values(first, last)
  local out = {}
  for from = first, last, 4000 do
    for _, v in ipairs(redis.call('MGET', unpack(KEYS, from, math.min(from + 3999, last)))) do
      out[#out + 1] = v
    end
  end
  return out
end

-- shown reads the map: the state of each seat.
local function shown(map, seats)
  local out = {}
  for from = 1, #seats, 1000 do
    local args = {}
    for k = from, math.min(from + 999, #seats) do
      args[#args + 1] = 'GET'
      args[#args + 1] = 'u2'
      args[#args + 1] = spot(seats[k])
    end
    for _, state in ipairs(redis.call('BITFIELD_RO', map, unpack(args))) do
      out[#out + 1] = state
    end
  end
  return out
end

-- paint writes the map: seats[k] becomes states[k].
local function paint(map, seats, states)
  for from = 1, #seats, 1000 do
    local args = {}
    for k = from, math.min(from + 999, #seats) do
      args[#args + 1] = 'SET'
      args[#args + 1] = 'u2'
      args[#args + 1] = spot(seats[k])
      args[#args + 1] = states[k]
    end
    redis.call('BITFIELD', map, unpack(args))
  end
end

-- all is a list of n times state, for paint.
local function all(n, state)
  local out = {}
  for k = 1, n do out[k] = state end
  return out
end

-- recount compares the places left with ARGV[first], ARGV[first + 1]…: area and
-- places in turn. It returns the pairs that differ, and the body that says so.
local function recount(areas, first)
  local left, said = {}, {}
  for k = first, #ARGV, 2 do
    if redis.call('HGET', areas, ARGV[k]) ~= ARGV[k + 1] then
      left[#left + 1] = ARGV[k]
      left[#left + 1] = ARGV[k + 1]
      said[#said + 1] = cjson.encode(ARGV[k]) .. ':' .. ARGV[k + 1]
    end
  end
  if #left == 0 then return left, '' end
  return left, ',"areas":{' .. table.concat(said, ',') .. '}'
end


-- number.lua stands before every other script: how a change is numbered and
-- logged. It runs nothing by itself.
--
-- Numbers and times stay strings: .. and cjson would round a number to 14
-- digits, a number has 16, and printing one costs more than a small command.
-- Strings of one length compare as the numbers do, and microseconds have 16
-- digits from 2001 to 2286. %d is exact in Lua up to 2^53, which the clock
-- reaches in 2255.

-- numbered fails when no number is left above one: before anything is written,
-- since a script that fails keeps what it wrote.
local function numbered(n)
  if #n > 16 or #n == 16 and n > '9007199254740990' then
    error('the event is at number ' .. n .. ', and no change above 2^53 can be told apart', 0)
  end
end

-- clock returns Redis time, the only clock there is: in microseconds and in
-- milliseconds. Who is about to number a change says which number is the last.
local function clock(last)
  if last then numbered(last) end
  local t = redis.call('TIME')
  local us = #t[2] == 6 and t[1] .. t[2] or t[1] .. string.rep('0', 6 - #t[2]) .. t[2]
  return us, string.sub(us, 1, -4)
end

-- announce numbers a change, logs it and returns its JSON. body is what the
-- change says, from its first comma on. It comes last: it writes.
local function announce(seq, log, last, us, ms, body)
  local n = us
  if #us < #last or #us == #last and us <= last then
    n = string.format('%d', last + 1) -- the clock is behind
  end
  local change = '{"n":' .. n .. ',"prev":' .. last .. ',"at":' .. ms .. body .. '}'
  if n ~= us then -- and numbers say nothing of age
    redis.call('XADD', log, 'MAXLEN', '~', '100000', n, 'c', change)
  elseif string.byte(n, -1) == 48 then -- every tenth time will do
    redis.call('XADD', log, 'MINID', '~', string.format('%d', us - 120000000), n, 'c', change)
  else
    redis.call('XADD', log, n, 'c', change)
  end
  redis.call('SET', seq, n)
  return change
end


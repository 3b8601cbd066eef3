-- pace.lua notes what a node says its sale did, and returns what all of them say
-- and how the pace stands. What a node said counts for five seconds: one that has
-- died is soon forgotten.
--
-- KEYS    room, did (hash: node -> when, and what it said)
-- ARGV    node, what it says, which room
-- Returns {now, when it was steered, factor, bad, why, cut, rose, calm, what each node
--         said...}; all but now as text
--         {cold}

local room, did = KEYS[1], KEYS[2]

if not read(room) then return {'cold'} end
local now = clock()
redis.call('HSET', did, ARGV[1], now .. ' ' .. ARGV[2])
redis.call('PEXPIRE', did, 60000)
local f = redis.call('HMGET', room, 'steered', 'factor', 'bad', 'why', 'cut', 'rose', 'calm')
local answer = {now, f[1] or '0', f[2] or '1', f[3] or '1', f[4] or '', f[5] or '0', f[6] or '0', f[7] or '0'}
local all = redis.call('HGETALL', did)
for n = 1, #all, 2 do
  local at, said = string.match(all[n + 1], '^(%d+) (.*)$')
  if math.abs(now - tonumber(at)) > 5000 then
    redis.call('HDEL', did, all[n])
  else
    answer[#answer + 1] = said
  end
end
return answer

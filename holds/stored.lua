-- stored.lua stands before every script that touches a basket: a string of
-- <state> <first> <until> <cap> <body>. The body is Go's: a script only tells
-- whether it is the one its caller has read, or puts another in its place. It runs nothing by itself.

-- opened returns the five parts of a basket; nothing when it is none.
local function opened(stored)
  return string.match(stored or '', '^(%l+) (%d+) (%d+) (%d+) (.*)$')
end

-- store writes a basket, which lasts as long as it did, or as ... says.
local function store(basket, state, first, till, cap, body, ...)
  redis.call('SET', basket, table.concat({state, first, till, cap, body}, ' '), ...)
end


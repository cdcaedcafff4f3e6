-- The rolling window of window.rs, on Redis: one list of marks "newest:admitted", oldest first.
-- The first mark has left the window; it says how many requests had been admitted before the second one.
-- KEYS: marks. ARGV: limit, window and slice in microseconds.
local marks, limit, window, slice = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local EXPIRED_MARKS_BATCH = 128

local function parse(mark)
  local newest, admitted = string.match(mark, '(%d+):(%d+)')
  return tonumber(newest), tonumber(admitted)
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local newest, admitted = 0, 0
local last = redis.call('LINDEX', marks, -1)
if last then newest, admitted = parse(last) end
-- A clock that went back must not let requests in that it has counted already.
now = math.max(now, newest)

-- The second mark is looked at alone, because it has mostly not expired; after a silence many have.
local oldest = redis.call('LINDEX', marks, 1)
while oldest and parse(oldest) + window <= now do
  local batch, expired = redis.call('LRANGE', marks, 1, EXPIRED_MARKS_BATCH), 0
  for index, mark in ipairs(batch) do
    if parse(mark) + window > now then break end
    expired = index
  end
  redis.call('LTRIM', marks, expired, -1)
  oldest = redis.call('LINDEX', marks, 1)
end
local before = 0
if last then
  local _
  _, before = parse(redis.call('LINDEX', marks, 0))
end

local admit = admitted - before < limit
if admit then
  admitted = admitted + 1
  local mark = string.format('%.0f:%.0f', now, admitted)
  if not last then redis.call('RPUSH', marks, '0:0', mark)
  elseif oldest and math.floor(newest / slice) == math.floor(now / slice) then redis.call('LSET', marks, -1, mark)
  else redis.call('RPUSH', marks, mark) end
  newest = now
  oldest = oldest or mark
  -- One millisecond more than the window: the key must not be gone before its last mark is.
  redis.call('PEXPIRE', marks, math.ceil(window / 1000) + 1)
end

local remaining = math.max(limit - (admitted - before), 0)
local retry_after, reset_after = 0, 0
-- A key of which nothing is left in the window has its whole quota.
if oldest then reset_after = newest + window - now end
if remaining == 0 then
  if oldest then
    -- The mark may have been rewritten by this request.
    if admit then oldest = redis.call('LINDEX', marks, 1) end
    retry_after = parse(oldest) + window - now
  else retry_after = window end
end
return { admit and 1 or 0, remaining, retry_after, reset_after }

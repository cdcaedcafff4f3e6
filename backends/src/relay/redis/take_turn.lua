-- KEYS: rotation of the team, number of the message. The count and the memory of it are one step.
local known = redis.call('GET', KEYS[2])
if known then return tonumber(known) end
local number = redis.call('INCR', KEYS[1]) - 1
redis.call('SET', KEYS[2], number, 'PX', KEEP_MS)
return number

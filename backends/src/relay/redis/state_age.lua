-- KEYS: run id of the server and the time of its first call. Returns the milliseconds for which the
-- server is known to have kept its state. A restarted server may have lost everything, and a
-- promoted replica the last writes of its predecessor.
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local known = redis.call('HMGET', KEYS[1], 'run_id', 'since')
if known[1] == run_id then return now - tonumber(known[2]) end
redis.call('HSET', KEYS[1], 'run_id', run_id, 'since', now)
return 0

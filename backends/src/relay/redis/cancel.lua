-- Returns 1 if the reply is marked, 0 if it is finalized (`sealed`) or final.
local status = redis.call('HGET', reply_key, 'status')
if status and status ~= 'running' then return 0 end
redis.call('HSET', reply_key, 'cancelled', '1')
redis.call('PEXPIRE', reply_key, KEEP_MS)
return 1

-- Answers 1 when the mark was made, 0 when the reply is sealed or final.
local status = redis.call('HGET', reply_key, 'status')
if status and status ~= 'running' then return 0 end
redis.call('HSET', reply_key, 'cancelled', '1')
redis.call('PEXPIRE', reply_key, KEEP_MS)
return 1

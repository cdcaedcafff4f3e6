-- ARGV: attempt, nonce, generation, seq and bytes of the end, '1' for a cancelled end.
local reply = read_reply()
local refusal = renew(reply, ARGV[1], ARGV[2])
if refusal then return refusal end
-- A finalized reply keeps its end.
if reply.status ~= 'running' then return 'held' end
if reply.cancelled and ARGV[6] ~= '1' then return 'cancelled' end
if place(reply, tonumber(ARGV[3]), tonumber(ARGV[4])) == 'gap' then return 'forgotten' end
redis.call('HSET', reply_key, 'status', 'sealed', 'end', ARGV[5])
return 'held'

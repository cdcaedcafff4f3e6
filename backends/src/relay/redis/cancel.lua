-- ARGV: generation, seq and bytes of the end of a waiting reply.
local reply = read_reply()
if reply.status and reply.status ~= 'running' then return 'late' end
redis.call('HSET', reply_key, 'cancelled', '1')
local slot = tonumber(redis.call('HGET', conversation_key, place_field) or 0)
-- Without a slot, the state may be lost while a worker holds the claim.
local is_queued = not reply.status and slot > now
if is_queued then
  log_frame(reply, tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3])
  save_log(reply, '0')
  redis.call('HSET', reply_key, 'status', 'sealed', 'end', ARGV[3], 'attempt', '0', 'failures', 0, 'released', '1')
end
keep()
return is_queued and 'ended' or 'requested'

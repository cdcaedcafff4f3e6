-- ARGV: attempt, nonce, channel or '', address, generation, seq and bytes of the end, count, '1' when announced.
local reply = read_reply()
-- A repeated completion, whose response was lost, has no effect.
if reply.tombstone == tombstone(ARGV[1], ARGV[2]) then return 'held' end
local refusal = renew(reply, ARGV[1], ARGV[2])
if refusal then return refusal end

if reply.status ~= 'stored' then
  -- What is stored counts, even if another end was finalized.
  local generation, seq, frame = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
  -- A new generation starts a new log; in the same generation the end follows the last frame.
  local last = generation ~= reply.generation and 0 or reply.last
  log_frame(reply, generation, math.max(seq, last + 1), frame)
  save_log(reply, '0')
  push(ARGV[3], ARGV[4], frame)
  redis.call('HDEL', reply_key, 'end')
  -- A later announcement must not reset the count: another turn may have been completed meanwhile.
  redis.call('HSET', conversation_key, 'count', ARGV[8])
  redis.call('HDEL', conversation_key, place_field)
  leave()
end
if ARGV[9] == '1' then
  bury(ARGV[1], ARGV[2])
else
  redis.call('HSET', reply_key, 'status', 'stored')
  keep()
end
return 'held'

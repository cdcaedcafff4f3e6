-- ARGV: attempt, nonce, channel or '', address, then generation, seq and bytes of each frame of the reply so far.
local reply = read_reply()
local refusal = renew(reply, ARGV[1], ARGV[2])
if refusal == 'fenced' or (refusal == 'forgotten' and lease_of_another() > 0) then return 'fenced' end

if not reply.status or reply.status == 'running' then
  reply.status = 'running'
  redis.call('HSET', reply_key, 'status', 'running', 'attempt', ARGV[1], 'nonce', ARGV[2], 'failures', reply.failures,
    'released', '0')
  lease('running')
  keep()
  redis.call('DEL', log_key)
  reply.generation, reply.last = 0, 0
  for index = 5, #ARGV, 3 do
    local generation, seq, frame = tonumber(ARGV[index]), tonumber(ARGV[index + 1]), ARGV[index + 2]
    if generation ~= reply.generation or seq > reply.last then
      log_frame(reply, generation, seq, frame)
    end
    push(ARGV[3], ARGV[4], frame)
  end
  -- One gap is accepted from now on: the holder may have sent its reply in fewer, merged frames.
  save_log(reply, '1')
end
return claim_status(reply)

-- ARGV: attempt, nonce, channel or '', address, heartbeat or '', then generation, seq and bytes of each frame.
local reply = read_reply()
local refusal = renew(reply, ARGV[1], ARGV[2])
if refusal then return refusal end

local answer, added = claim_status(reply), false
if ARGV[5] ~= '' then push(ARGV[3], ARGV[4], ARGV[5]) end
for index = 6, #ARGV, 3 do
  local generation, seq, frame = tonumber(ARGV[index]), tonumber(ARGV[index + 1]), ARGV[index + 2]
  if reply.status == 'running' then
    local placed = place(reply, generation, seq)
    if placed == 'gap' then
      answer = 'forgotten'
      break
    elseif placed == 'added' then
      log_frame(reply, generation, seq, frame)
      reply.loose, added = '0', true
      push(ARGV[3], ARGV[4], frame)
    end
  end
end
if added then save_log(reply, '0') end
return answer

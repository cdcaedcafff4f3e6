-- KEYS[5]: mark of a voided publish. ARGV: nonce, lowest attempt.
local nonce, attempt_min = ARGV[1], tonumber(ARGV[2])
if redis.call('EXISTS', KEYS[5]) == 1 then return { 'voided' } end
local reply = read_reply()
if reply.status == 'done' then return { 'done' } end

local alive = reply.status and reply.lease > now
if alive and reply.nonce ~= nonce then return { 'busy', reply.lease - now, '', tonumber(reply.attempt) } end
if not alive then
  -- A stored reply has left the conversation, so that its announcement need not wait for another
  -- reply.
  local left = reply.status ~= 'stored' and lease_of_another() or 0
  if left > 0 then return { 'busy', left } end
  if reply.status and reply.released ~= '1' then reply.failures = reply.failures + 1 end
  reply.attempt = math.max(reply.status and reply.attempt + 1 or 1, attempt_min)
  reply.status = reply.status or 'running'
  redis.call('HSET', reply_key, 'status', reply.status, 'attempt', string.format('%.0f', reply.attempt),
    'nonce', nonce, 'failures', reply.failures, 'released', '0')
  lease(reply.status)
  keep()
end

local task = 'answer'
if reply.status == 'stored' then task = 'announce'
elseif reply.status == 'sealed' then task = 'store'
elseif reply.failures >= ATTEMPTS_MAX then task = 'give_up' end
local known = redis.call('HMGET', conversation_key, 'count', place_field)
local waited = known[2] and now + PLACE_MS - known[2] or -1
return { 'granted', tonumber(reply.attempt), task, tonumber(known[1] or -1), reply['end'] or '', waited }

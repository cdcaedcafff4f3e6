-- Common beginning of all scripts that work on one reply. The caller defines the constants before
-- it. The transitions are those of claim_state.rs. KEYS: conversation (hash), reply (hash), log
-- (stream), tombstone (string). All four share the hash tag of the conversation. The status of a
-- reply is running, sealed (finalized), stored or done; a reply without a status has at most a
-- cancel mark. A done reply has a tombstone instead of a hash, unless an older version wrote it.
local conversation_key, reply_key, log_key, tombstone_key = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
-- Field of the conversation with the queue slot of the reply; its value is the expiry of the slot.
local place_field = PLACE .. reply_key
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Returns the value of a tombstone: the attempt and the last 15 digits of the nonce, which Redis
-- stores as one number.
local function tombstone(attempt, nonce)
  return attempt .. string.sub(string.rep('0', 15) .. nonce, -15)
end

local function read_reply()
  local names = { 'status', 'attempt', 'nonce', 'lease', 'failures', 'released', 'cancelled', 'end', 'generation',
    'last', 'loose' }
  local values, reply = redis.call('HMGET', reply_key, unpack(names)), {}
  for index, name in ipairs(names) do reply[name] = values[index] or nil end
  if reply.status == 'done' then
    reply.tombstone = tombstone(reply.attempt, reply.nonce)
  elseif not reply.status then
    reply.tombstone = redis.call('GET', tombstone_key) or nil
    reply.status = reply.tombstone and 'done'
  end
  reply.lease = tonumber(reply.lease or 0)
  reply.failures = tonumber(reply.failures or 0)
  reply.generation = tonumber(reply.generation or 0)
  reply.last = tonumber(reply.last or 0)
  -- The log may have expired or been evicted before its reply.
  if reply.last > 0 and redis.call('EXISTS', log_key) == 0 then reply.last = 0 end
  return reply
end

-- Returns the remaining lease of another reply of the conversation, in milliseconds.
local function lease_of_another()
  local held = redis.call('HMGET', conversation_key, 'current', 'lease')
  if not held[1] or held[1] == reply_key then return 0 end
  return math.max(tonumber(held[2]) - now, 0)
end

local function is_current()
  return redis.call('HGET', conversation_key, 'current') == reply_key
end

-- Takes or renews the lease; a stored reply has left its conversation.
local function lease(status)
  redis.call('HSET', reply_key, 'lease', now + LEASE_MS)
  if status ~= 'stored' then
    redis.call('HSET', conversation_key, 'current', reply_key, 'lease', now + LEASE_MS)
  end
end

local function keep()
  redis.call('PEXPIRE', reply_key, KEEP_MS)
  redis.call('PEXPIRE', conversation_key, KEEP_MS)
end

-- Replaces the state of a reply by its tombstone, and shortens the lives of its log and of a
-- conversation without other open replies.
local function bury(attempt, nonce)
  redis.call('DEL', reply_key)
  redis.call('SET', tombstone_key, tombstone(attempt, nonce), 'PX', KEEP_MS)
  redis.call('PEXPIRE', log_key, DONE_LOG_TTL_MS)
  local fields, count = redis.call('HGETALL', conversation_key), nil
  for index = 1, #fields, 2 do
    local field, value = fields[index], fields[index + 1]
    local is_old_slot = string.sub(field, 1, #PLACE) == PLACE and tonumber(value) <= now
    if field == 'count' then count = value elseif not is_old_slot then return end
  end
  -- A hash that had a long field stays large when the field is deleted.
  redis.call('DEL', conversation_key)
  if count then
    redis.call('HSET', conversation_key, 'count', count)
    redis.call('PEXPIRE', conversation_key, COUNT_TTL_MS)
  end
end

local function leave()
  if is_current() then redis.call('HDEL', conversation_key, 'current', 'lease') end
end

-- Renews the lease of a valid token, or returns the reason why it is invalid. A lease that ended is
-- revived unless another worker has claimed since.
local function renew(reply, attempt, nonce)
  if not reply.status then return 'forgotten' end
  local own = reply.attempt == attempt and reply.nonce == nonce and reply.status ~= 'done'
  if not own then return 'fenced' end
  if reply.lease <= now and reply.status ~= 'stored' and not is_current() then return 'fenced' end
  lease(reply.status)
  return nil
end

local function claim_status(reply)
  if reply.cancelled and reply.status == 'running' then return 'cancelled' end
  return 'held'
end

local function push(channel, address, frame)
  if channel ~= '' then redis.call('PUBLISH', channel, address .. frame) end
end

local function log_frame(reply, generation, seq, frame)
  if generation ~= reply.generation then
    redis.call('DEL', log_key)
    reply.generation, reply.last = generation, 0
  end
  -- The entry id is the seq, so that Redis itself rejects frames out of order.
  redis.call('XADD', log_key, '0-' .. string.format('%.0f', seq), 'f', frame)
  reply.last = seq
end

local function save_log(reply, loose)
  redis.call('HSET', reply_key, 'generation', reply.generation, 'last', reply.last, 'loose', loose)
  redis.call('PEXPIRE', log_key, LOG_TTL_MS)
end

-- Returns the result of appending a frame: added, repeated or gap.
local function place(reply, generation, seq)
  local same = generation == reply.generation
  local last = same and reply.last or 0
  if seq <= last then return 'repeated' end
  if seq > last + 1 and not (same and reply.loose == '1') then return 'gap' end
  return 'added'
end


-- KEYS: decision of the message, last decision of its conversation. ARGV: decision. Returns the
-- recorded decision.
local known = redis.call('GET', KEYS[1])
if known then return known end
redis.call('SET', KEYS[1], ARGV[1], 'PX', DECISION_TTL_MS)
redis.call('SET', KEYS[2], ARGV[1], 'PX', DECISION_TTL_MS)
return ARGV[1]

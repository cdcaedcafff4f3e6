-- KEYS: name. ARGV: value. Returns the stored value.
local known = redis.call('GET', KEYS[1])
if known then return known end
redis.call('SET', KEYS[1], ARGV[1], 'PX', KEEP_MS)
return ARGV[1]

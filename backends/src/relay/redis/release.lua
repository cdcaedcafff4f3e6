-- ARGV: attempt, nonce.
local reply = read_reply()
local refusal = renew(reply, ARGV[1], ARGV[2])
if refusal then return refusal end
redis.call('HSET', reply_key, 'lease', now, 'nonce', '', 'released', '1')
leave()
return 'held'

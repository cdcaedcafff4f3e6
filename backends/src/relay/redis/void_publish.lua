-- KEYS[5]: mark of the voided publish.
redis.call('SET', KEYS[5], 1, 'PX', KEEP_MS)
redis.call('HDEL', conversation_key, place_field)
return 1

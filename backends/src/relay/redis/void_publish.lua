-- KEYS[4]: mark of the voided publish.
redis.call('SET', KEYS[4], 1, 'PX', KEEP_MS)
redis.call('HDEL', conversation_key, place_field)
return 1

-- ARGV: maximum number of slots. Returns 1 if the reply has a slot or needs none.
local status = read_reply().status
if status == 'stored' or status == 'done' then return 1 end
local fields, taken, own = redis.call('HGETALL', conversation_key), 0, false
for index = 1, #fields, 2 do
  local field = fields[index]
  if string.sub(field, 1, #PLACE) == PLACE then
    if tonumber(fields[index + 1]) <= now then
      redis.call('HDEL', conversation_key, field)
    else
      taken = taken + 1
      own = own or field == place_field
    end
  end
end
if taken >= tonumber(ARGV[1]) and not own then return 0 end
redis.call('HSET', conversation_key, place_field, now + PLACE_MS)
redis.call('PEXPIRE', conversation_key, KEEP_MS)
return 1

-- Returns the milliseconds for which the claim stays valid without another renewal.
local reply = read_reply()
if reply.status == 'done' then return 0 end
return math.max(reply.lease - now, 0)

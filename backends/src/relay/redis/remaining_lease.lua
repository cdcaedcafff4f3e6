-- Returns the milliseconds for which the claim stays valid without another renewal.
return math.max(read_reply().lease - now, 0)

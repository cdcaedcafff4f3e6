-- KEYS: round-robin counts of the team, member chosen for the message. ARGV: members in the team's
-- order. Returns the chosen member. The choice and its count are one atomic step; round_robin.rs
-- implements the same rule.
local known = redis.call('GET', KEYS[2])
if known then return known end
local kept = redis.call('GET', KEYS[1])
local rotation = kept and cjson.decode(kept) or { turns = 0, members = {} }
local members = rotation.members

local least_of_known, least_of_stayed
for _, id in ipairs(ARGV) do
  local place = members[id]
  if place then
    least_of_known = math.min(least_of_known or place.count, place.count)
    if place.seen == rotation.turns then least_of_stayed = math.min(least_of_stayed or place.count, place.count) end
  end
end
local least = least_of_stayed or least_of_known or 0

rotation.turns = rotation.turns + 1
local chosen, chosen_id
for _, id in ipairs(ARGV) do
  local place = members[id] or { count = least, took = 0 }
  place.count = math.min(math.max(place.count, least), least + 1)
  place.seen = rotation.turns
  members[id] = place
  if not chosen or place.count < chosen.count or (place.count == chosen.count and place.took < chosen.took) then
    chosen, chosen_id = place, id
  end
end
chosen.count = chosen.count + 1
chosen.took = rotation.turns

local away = {}
for id, place in pairs(members) do
  if place.seen < rotation.turns then away[#away + 1] = id end
end
table.sort(away, function(one, other)
  local seen = { members[one].seen, members[other].seen }
  return seen[1] > seen[2] or (seen[1] == seen[2] and one < other)
end)
for index = ABSENT_MEMBERS_MAX + 1, #away do members[away[index]] = nil end

redis.call('SET', KEYS[1], cjson.encode(rotation), 'PX', ROTATION_MS)
redis.call('SET', KEYS[2], chosen_id, 'PX', DECISION_TTL_MS)
return chosen_id

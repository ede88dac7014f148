--! keys: key
--! args: kind, after, most, most_bytes
-- Reads a part of a value after a place ('': from its beginning): up to ``most`` elements, and no further element after
-- those that have ``most_bytes`` together. An element is a list of texts: an entry of a stream is its id, the number of
-- its fields and values, and these; a hash has pairs of field and value, a sorted set of member and score.
-- Returns the elements and the place after them ('': the end).
local elements, bytes, place = {}, 0, after
local scans = {hash = 'HSCAN', set = 'SSCAN', zset = 'ZSCAN'}
local function add(element)
  for _, text in ipairs(element) do bytes = bytes + #text end
  elements[#elements + 1] = element
end
local function add_entry()
  local entry = redis.call('XRANGE', key, place == '' and '-' or '(' .. place, '+', 'COUNT', 1)[1]
  if not entry then return '' end
  add({entry[1], tostring(#entry[2]), unpack(entry[2])})
  return entry[1]
end
local function add_item()
  local index = tonumber(place) or 0
  local item = redis.call('LINDEX', key, index)
  if not item then return '' end
  add({item})
  return tostring(index + 1)
end
local function add_members()
  local reply = redis.call(scans[kind], key, place == '' and '0' or place, 'COUNT', 1)
  local step = kind == 'set' and 1 or 2
  for at = 1, #reply[2], step do add({unpack(reply[2], at, at + step - 1)}) end
  return reply[1] == '0' and '' or reply[1]
end
local read = kind == 'stream' and add_entry or kind == 'list' and add_item or add_members
repeat
  place = read()
until place == '' or #elements >= tonumber(most) or bytes >= tonumber(most_bytes)
return {elements, place}

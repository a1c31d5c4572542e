-- 3: instance ('' = all), 4: after, 5: limit (0 = all).
if load_meta() then advance(true) end
local name, after, limit = ARGV[3], ARGV[4], tonumber(ARGV[5])
if limit == 0 then limit = -1 end
local key, from, to, skip = ROOMS, '-', '+', 0
if name ~= '' then key, from, to, skip = HOMES, '[' .. name .. SEP, '(' .. name .. AFTER_SEP, #name + 1 end
if after ~= '' then
  if name ~= '' then from = '(' .. name .. SEP .. after else from = '(' .. after end
end
local members = call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, limit)
local reply = { 'ok' }
local n = 1
for first = 1, #members, 500 do
  local rooms = {}
  for i = first, math.min(#members, first + 499) do table.insert(rooms, string.sub(members[i], skip + 1)) end
  local records = call('HMGET', PINS, unpack(rooms))
  for i = 1, #rooms do
    reply[n + 1], reply[n + 2] = rooms[i], records[i]
    n = n + 2
  end
end
return reply

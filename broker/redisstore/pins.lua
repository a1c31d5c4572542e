-- 3: instance ('' = all), 4: after, 5: limit (0 = all).
if load_meta() then advance(true) end
local name, after, limit = ARGV[3], ARGV[4], tonumber(ARGV[5])
if limit == 0 then limit = -1 end
local rooms
if name ~= '' then
  rooms = rooms_of(name, after, limit)
else
  local from = '-'
  if after ~= '' then from = '(' .. after end
  rooms = call('ZRANGEBYLEX', ROOMS, from, '+', 'LIMIT', 0, limit)
end
local reply, n = { 'ok' }, 1
for first = 1, #rooms, CHUNK do
  local last = math.min(#rooms, first + CHUNK - 1)
  local records = call('HMGET', PINS, unpack(rooms, first, last))
  for i = first, last do
    reply[n + 1], reply[n + 2] = rooms[i], records[i - first + 1]
    n = n + 2
  end
end
return reply

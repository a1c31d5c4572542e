-- The write of the clock also proves that this server may still change the pool: a
-- plan that a cut-off master remembers must not be served.
local refused = lost()
if refused then return refused end
advance(false)
local reply = append({ 'ok' }, state_reply())

local rooms, participants = 0, 0
forget_demand(500)
local wanting = call('ZRANGEBYSCORE', DEMAND, '(' .. num(meta.now - DEMAND_TTL), '+inf')
for i = 1, #wanting do
  rooms = rooms + 1
  participants = participants + tonumber(call('HGET', WANTED, wanting[i]))
end
append(reply, { num(rooms), num(participants) })

append(reply, plan_reply())
local all = call('HGETALL', INSTANCES)
local n = #reply
for i = 1, #all, 2 do
  local oldest = num(NEVER)
  if string.match(all[i + 1], '^[^\31]*\31[^\31]*\31[^\31]*\31[^\31]*\31([^\31]*)') ~= '0' then oldest = oldest_pin(all[i]) end
  reply[n + 1], reply[n + 2], reply[n + 3] = all[i], all[i + 1], oldest
  n = n + 3
end
return reply

-- 3: room, 4: expected, 5: settings and labels, 6: pick, 7: soft, 8: hard, then of each
-- candidate: name, incarnation.
local refused = enter()
if refused then return refused end
local room, expected = ARGV[3], tonumber(ARGV[4])
local there = get_pin(room)
if there then
  satisfy(room)
  local fresh = ''
  if there.request == REQUEST then fresh = '1' end
  return { 'ok', fresh, pin_record(there) }
end
if meta.phase == 'rebuilding' then return { 'rebuilding' } end

local pick, soft, hard = ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local below = math.huge
local plan = call('HMGET', PLAN, 'desired', 'guards')
if plan[1] then
  below = tonumber(plan[1])
  for _, g in ipairs(guards_of(plan[2] or '')) do
    if meta.now < g.till then below = math.min(below, g.below) end
  end
end

local best, best_load, settled
for first = 9, #ARGV, 2 * CHUNK do
  local names = {}
  for i = first, math.min(#ARGV - 1, first + 2 * CHUNK - 2), 2 do table.insert(names, ARGV[i]) end
  local records = call('HMGET', INSTANCES, unpack(names))
  for i = 1, #names do
    if records[i] and not settled then
      local incarnation, ordinal, sessions, reserved, block = string.match(records[i], '^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31[^\31]*\31([^\31]*)\31')
      if incarnation ~= '' and incarnation == ARGV[first + 2 * i - 1] and block == '' and tonumber(ordinal) < below then
        local load = tonumber(sessions) + tonumber(reserved)
        local after = load + expected
        if hard == 0 or after <= hard then
          if pick == 'first' and (soft == 0 or after <= soft) then
            best, settled = names[i], true
          elseif not best or load < best_load then
            best, best_load = names[i], load
          end
        end
      end
    end
  end
  if settled then break end
end

if not best then
  call('ZADD', DEMAND, num(meta.now), room)
  call('HSET', WANTED, room, num(expected))
  forget_demand(8)
  return { 'nocapacity' }
end

local inst = get_instance(best)
local epoch = math.max(meta.epoch + 1, micros)
call('HSET', META, 'epoch', num(epoch))
inst.reserved, inst.pins, inst.empty = inst.reserved + expected, inst.pins + 1, NEVER
save(inst)
satisfy(room)
return { 'ok', '1', put_pin({
  room = room, instance = best, incarnation = inst.incarnation, epoch = epoch, state = 'creating', expected = expected, reserved = expected,
  created = meta.now, since = meta.now, seen = meta.now, at = num(micros), request = REQUEST, doc = ARGV[5] }) }

-- 3: instance, 4: ordinal, 5: address, 6: listed, 7: begin, 8: fault, 9: advice, 10: answered,
-- 11: incarnation, 12: sessions, 13: participants, 14: rooms, 15: string ids, 16: vacant,
-- then of each reservation: room, epoch, left.
local refused = enter()
if refused then return refused end
local begin, fault = tonumber(ARGV[7]), ARGV[8]
local known = get_instance(ARGV[3])
local inst = known or new_instance(ARGV[3])
if fault == '' and inst.incarnation ~= '' and inst.incarnation ~= ARGV[11] then return { 'stale' } end
if not known or ARGV[6] ~= '' then
  inst.ordinal = tonumber(ARGV[4])
  -- Where its rooms are made: an address at which it was not found is none, once there is a better one.
  if inst.look == NEVER or fault == '' and begin >= inst.look then inst.address = ARGV[5] end
end
if ARGV[6] ~= '' then
  inst.listed = meta.now
  if inst.first == NEVER then inst.first = meta.now end
end
if ARGV[10] ~= '' then inst.answered = '1' end

if begin < inst.look then return instance_reply(inst) end
if fault ~= '' then
  if inst.request ~= REQUEST then
    inst.request = REQUEST
    if inst.failures == 0 then inst.faulted = begin end
    inst.failures, inst.fault, inst.advice, inst.tried = inst.failures + 1, fault, ARGV[9], math.max(inst.tried, begin)
  end
  return instance_reply(inst)
end

if inst.incarnation == '' and ARGV[11] ~= '' then inst.incarnation, inst.life = ARGV[11], meta.now end
inst.look, inst.sessions, inst.participants, inst.rooms, inst.strings = begin, tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14]), ARGV[15]
-- A failure that began later than this look stands.
if begin >= inst.tried then
  inst.fault, inst.advice, inst.faulted, inst.failures = '', ARGV[9], NEVER, 0
end
for i = 17, #ARGV, 3 do
  local pin = get_pin(ARGV[i])
  if pin and num(pin.epoch) == ARGV[i + 1] and pin.instance == inst.name then
    local left = tonumber(ARGV[i + 2])
    inst.reserved = inst.reserved - pin.reserved + left
    pin.reserved = left
    call('HSET', PINS, pin.room, pin_record(pin))
  end
end
local vacant = ARGV[16] ~= '' and inst.pins == 0
for i = 1, #inst.marks do
  if inst.marks[i].since >= begin then vacant = false end
end
if not vacant then
  inst.empty = NEVER
elseif inst.empty == NEVER then
  inst.empty = begin
end
return instance_reply(inst)

-- 3: instance, 4: incarnation, then of each room: name, epoch, expected, settings and labels.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then return { 'noinstance' } end
if inst.incarnation ~= ARGV[4] then return { 'stale' } end
local reply, highest = { 'ok' }, meta.epoch
for i = 5, #ARGV, 4 do
  local room, epoch, expected, doc = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  highest = math.max(highest, epoch)
  local pin, ended = get_pin(room), last_end(room)
  local outcome, record = 'adopted', ''
  if pin and pin.epoch == epoch and pin.instance == inst.name then
    outcome = 'known'
    if pin.request == REQUEST then outcome = 'adopted' end
    record = pin_record(pin)
  elseif pin and pin.epoch >= epoch then
    outcome, record = 'contradict', pin_record(pin)
  elseif ended and ended >= epoch then
    outcome = 'ended'
  else
    if pin then
      local other = inst
      if pin.instance ~= inst.name then other = get_instance(pin.instance) end
      end_pin(pin, other, 'gone')
      if other and other ~= inst then save(other) end
    end
    record = put_pin({ room = room, instance = inst.name, incarnation = inst.incarnation, epoch = epoch, state = 'live', expected = expected,
      reserved = expected, created = meta.now, since = meta.now, seen = meta.now, at = num(micros), request = REQUEST, doc = doc })
    inst.pins, inst.reserved, inst.empty = inst.pins + 1, inst.reserved + expected, NEVER
  end
  append(reply, { outcome, record })
end
if highest > meta.epoch then call('HSET', META, 'epoch', num(highest)) end
save(inst)
return reply

-- 3: the nonce of the term that begins if the store has none of this history.
local refused = lost()
if refused and refused[1] ~= 'lost' then return refused end
if not refused then
  advance(false)
  return append({ 'ok' }, state_reply())
end
if meta.term == '' then
  -- High enough for what happened before the store's time, and never before a
  -- moment of an earlier term of the same server.
  meta.clock = micros
  meta.now = math.floor(micros / 1000)
else
  advance(false)
end
meta.term, meta.history, meta.phase, meta.gap, meta.floor = ARGV[3], history(), 'rebuilding', NEVER, 0
call('HSET', META, 'term', meta.term, 'history', meta.history, 'phase', meta.phase, 'clock', num(meta.clock), 'wall', num(micros),
  'gap', num(meta.gap), 'floor', '0', 'epoch', num(math.max(meta.epoch, micros)))
call('DEL', DEMAND, WANTED, PLAN)
local names = call('HKEYS', INSTANCES)
for i = 1, #names do
  local inst = get_instance(names[i])
  inst.answered = ''
  save(inst)
end
return append({ 'ok' }, state_reply())

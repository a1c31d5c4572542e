-- 3: hold ms.
local refused = enter()
if refused then return refused end
if meta.phase == 'rebuilding' then
  local over, hold = true, tonumber(ARGV[3])
  local records = call('HVALS', INSTANCES)
  for i = 1, #records do
    local inst = parse_instance('', records[i])
    if inst.lost == '' and inst.answered == '' or meta.now - inst.known < hold then over = false end
  end
  if over then
    meta.phase = 'ready'
    call('HSET', META, 'phase', meta.phase)
    raise_floor(meta.floor)
  end
end
return append({ 'ok' }, state_reply())

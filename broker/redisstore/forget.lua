-- 3: instance.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then
  if call('HGET', META, 'forgot') == REQUEST then return { 'ok' } end
  return { 'noinstance' }
end
if inst.pins > 0 or not (inst.look == NEVER or released(inst) or inst.lost ~= '') then return { 'stale' } end
call('HDEL', INSTANCES, inst.name)
call('HSET', META, 'forgot', REQUEST)
return { 'ok' }

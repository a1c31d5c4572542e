-- 3: instance, 4: from, 5: to.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then return { 'noinstance' } end
if inst.fence == REQUEST then return ended_before(inst.name, { 'ok' }) end
if inst.incarnation ~= ARGV[4] then return { 'stale' } end
local reply = end_all(inst, 'reborn', { 'ok' })
inst.incarnation, inst.life, inst.marks, inst.empty, inst.lost, inst.fence = ARGV[5], meta.now, {}, NEVER, '', REQUEST
save(inst)
return reply

-- 3: instance, 4: incarnation.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then return { 'noinstance' } end
if inst.incarnation ~= ARGV[4] then return { 'stale' } end
if inst.fence == REQUEST then return ended_before(inst.name, { 'ok' }) end
local reply = end_all(inst, 'lost', { 'ok' })
inst.lost, inst.fence = '1', REQUEST
save(inst)
return reply

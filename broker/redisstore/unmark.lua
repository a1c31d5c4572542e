-- 3: instance, 4: owner.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then return { 'noinstance' } end
if released(inst) then return { 'released' } end
local _, at = mark_of(inst, ARGV[4])
if at then table.remove(inst.marks, at) end
return instance_reply(inst)

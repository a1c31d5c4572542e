-- 3: instance, 4: owner, 5: reason, 6: grace.
local refused = enter()
if refused then return refused end
local inst = get_instance(ARGV[3])
if not inst then return { 'noinstance' } end
local mark = mark_of(inst, ARGV[4])
if mark then
  mark.reason = ARGV[5]
else
  table.insert(inst.marks, { owner = ARGV[4], reason = ARGV[5], grace = ARGV[6], since = meta.now })
end
return instance_reply(inst)

-- 3: floor, 4: limit, 5: number of instances, then of each: name, ordinal, address, incarnation,
-- released, lost, number of marks, and of each mark: owner, reason, grace, elapsed ms.
local refused = enter()
if refused then return refused end

local function remaining(m)
  if m.grace == '0' then return math.huge end
  return math.max(0, tonumber(m.grace) / 1000000 - (meta.now - m.since))
end

local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local name, ordinal, address, incarnation = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local sealed, fenced, marks = ARGV[at + 4], ARGV[at + 5], tonumber(ARGV[at + 6])
  at = at + 7
  local inst = get_instance(name)
  if not inst then
    inst = new_instance(name)
    inst.ordinal, inst.address = tonumber(ordinal), address
    inst.first, inst.listed = meta.now, meta.now -- else its being unlisted would have no beginning
  end
  if inst.incarnation == '' and incarnation ~= '' then inst.incarnation, inst.life = incarnation, meta.now end
  local same = incarnation == '' or inst.incarnation == incarnation
  if sealed ~= '' and not released(inst) then inst.sealed = meta.now end
  if fenced ~= '' and inst.incarnation == incarnation then inst.lost = '1' end
  for _ = 1, marks do
    local m = { owner = ARGV[at], reason = ARGV[at + 1], grace = ARGV[at + 2], since = math.max(0, meta.now - tonumber(ARGV[at + 3])) }
    at = at + 4
    local there = mark_of(inst, m.owner)
    if not same then
      -- It was set on another incarnation.
    elseif not there then
      table.insert(inst.marks, m)
    elseif remaining(m) > remaining(there) then
      there.since, there.grace = m.since, m.grace
    end
  end
  save(inst)
end

-- Without a plan its place holds the lowest number that may still be served.
local limit, plan = tonumber(ARGV[4]), call('HMGET', PLAN, 'version', 'desired')
if not plan[1] and limit > 0 and limit < (tonumber(plan[2]) or math.huge) then call('HSET', PLAN, 'desired', num(limit)) end
raise_floor(math.max(meta.floor, tonumber(ARGV[3])))
return { 'ok' }

-- 3: the version it replaces, 4: desired, 5: target, 6: emptyWhen, 7: body, 8: guard ms, 9: number of
-- seals, then of each: name, incarnation, occupied; then the names to unseal.
local refused = enter()
if refused then return refused end
local version, desired, seals = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[9])
if meta.phase == 'rebuilding' then return { 'rebuilding' } end
local was = call('HMGET', PLAN, 'version', 'desired', 'guards', 'request')
if was[4] and was[4] == REQUEST then return append({ 'ok' }, plan_reply()) end
if tonumber(was[1] or '0') ~= version then return { 'version' } end

local least = meta.floor
if was[1] then least = tonumber(was[2]) end
local asked, sealing, refusals, there = {}, {}, { 'seal' }, {}
for i = 10, 9 + 3 * seals, 3 do asked[ARGV[i]] = { incarnation = ARGV[i + 1], occupied = ARGV[i + 2] ~= '' } end
local all = call('HGETALL', INSTANCES)
for i = 1, #all, 2 do
  local inst = parse_instance(all[i], all[i + 1])
  there[inst.ordinal] = true
  local seal, why = asked[inst.name], nil
  -- A lower number takes away all from there on; with any other only the named ones go.
  if inst.ordinal >= desired and inst.lost == '' and not released(inst) and (seal or desired < least) then
    if not seal then
      why = 'missing'
    elseif seal.incarnation ~= inst.incarnation then
      why = 'incarnation'
    elseif (inst.look ~= NEVER or inst.incarnation ~= '') and not mark_of(inst, 'scaler') then
      why = 'mark'
    elseif inst.pins > 0 and not seal.occupied then
      why = 'pins'
    end
    if why then
      append(refusals, { inst.name, num(inst.ordinal), why, num(inst.pins) })
    else
      table.insert(sealing, inst)
    end
  end
end
if not was[1] then
  for ordinal = desired, meta.floor - 1 do
    if not there[ordinal] then
      append(refusals, { '', num(ordinal), 'floor', '0' })
      break
    end
  end
end
if #refusals > 1 then return refusals end

-- As broker.Plan.NextGuards: the number before a rise becomes a guard, unless one that holds
-- undercuts and outlasts it; one that it undercuts and outlasts goes.
local guard_for, guards = tonumber(ARGV[8]), {}
local risen = was[2] and desired > tonumber(was[2]) and guard_for > 0 and { below = tonumber(was[2]), till = meta.now + guard_for }
for _, g in ipairs(guards_of(was[3] or '')) do
  if risen and g.below <= risen.below and g.till >= risen.till then risen = nil end
  if meta.now < g.till and not (risen and g.below >= risen.below and g.till <= risen.till) then table.insert(guards, g) end
end
if risen then table.insert(guards, risen) end
table.sort(guards, function(a, b) return a.below < b.below end)
for i, g in ipairs(guards) do guards[i] = num(g.below) .. ' ' .. num(g.till) .. ';' end
version = version + 1
for i = 1, #sealing do
  sealing[i].version, sealing[i].sealed = version, meta.now
  save(sealing[i])
end
for i = 10 + 3 * seals, #ARGV do
  local inst = get_instance(ARGV[i])
  if inst and inst.ordinal < desired and released(inst) then
    inst.version, inst.sealed = 0, NEVER
    save(inst)
  end
end
call('HSET', PLAN, 'version', num(version), 'desired', num(desired), 'target', ARGV[5], 'emptywhen', ARGV[6], 'body', ARGV[7],
  'stored', num(meta.now), 'guards', table.concat(guards), 'request', REQUEST)
return append({ 'ok' }, plan_reply())

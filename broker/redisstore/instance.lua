-- Instances, demand and the plan: how they are kept, and what several steps share.

-- An instance's record. What Claim reads stands first; marks follow the last field,
-- four fields each.
local INSTANCE = { 'incarnation', 'ordinal', 'sessions', 'reserved', 'pins', 'block', 'address', 'participants', 'rooms', 'strings',
  'look', 'empty', 'first', 'listed', 'life', 'fault', 'advice', 'faulted', 'failures', 'version', 'sealed', 'lost', 'answered',
  'known', 'tried', 'request', 'fence' }
local INSTANCE_NUMBERS = { ordinal = true, sessions = true, reserved = true, pins = true, participants = true, rooms = true, look = true,
  empty = true, first = true, listed = true, life = true, faulted = true, failures = true, version = true, sealed = true, known = true, tried = true }

local function parse_instance(name, record)
  local values, n = split(record)
  local inst = { name = name, marks = {} }
  for i = 1, #INSTANCE do
    local field = INSTANCE[i]
    if INSTANCE_NUMBERS[field] then inst[field] = tonumber(values[i]) else inst[field] = values[i] end
  end
  for i = #INSTANCE + 1, n - 3, 4 do
    table.insert(inst.marks, { owner = values[i], since = tonumber(values[i + 1]), grace = values[i + 2], reason = values[i + 3] })
  end
  return inst
end

local function get_instance(name)
  local record = call('HGET', INSTANCES, name)
  return record and parse_instance(name, record)
end

-- An instance that becomes known now.
local function new_instance(name)
  return { name = name, marks = {}, incarnation = '', ordinal = 0, sessions = 0, reserved = 0, pins = 0, block = '', address = '', participants = 0,
    rooms = 0, strings = '', look = NEVER, empty = NEVER, first = NEVER, listed = NEVER, life = NEVER, fault = '', advice = '', faulted = NEVER,
    failures = 0, version = 0, sealed = NEVER, lost = '', answered = '', known = meta.now, tried = NEVER, request = '', fence = '' }
end

local function released(inst) return inst.sealed ~= NEVER end

local function mark_of(inst, owner)
  for i = 1, #inst.marks do
    if inst.marks[i].owner == owner then return inst.marks[i], i end
  end
end

-- Saves an instance and returns its record.
local function save(inst)
  inst.block = ''
  if inst.lost ~= '' or released(inst) or #inst.marks > 0 or inst.look == NEVER then inst.block = '1' end
  local values = {}
  for i = 1, #INSTANCE do
    local field = INSTANCE[i]
    if INSTANCE_NUMBERS[field] then values[i] = num(inst[field]) else values[i] = inst[field] end
  end
  table.sort(inst.marks, function(a, b) return a.owner < b.owner end)
  for i = 1, #inst.marks do
    local m = inst.marks[i]
    append(values, { m.owner, num(m.since), m.grace, m.reason })
  end
  local record = table.concat(values, SEP)
  call('HSET', INSTANCES, inst.name, record)
  return record
end

local function oldest_pin(name)
  local first = call('ZRANGEBYLEX', AGES, '[' .. name .. SEP, '(' .. name .. AFTER_SEP, 'LIMIT', 0, 1)
  if not first[1] then return num(NEVER) end
  return num(tonumber(split(first[1])[2]))
end

local function instance_reply(inst)
  return { 'ok', inst.name, save(inst), oldest_pin(inst.name) }
end

-- Ends all pins of an instance and returns them, rooms and records in turn.
local function end_all(inst, cause, reply)
  local rooms = rooms_of(inst.name, '', -1)
  for i = 1, #rooms do
    local pin = get_pin(rooms[i])
    append(reply, { pin.room, pin_record(pin) })
    end_pin(pin, inst, cause)
  end
  return reply
end

-- Lifts the floor above every known instance whose removal has not been answered, or that has rooms:
-- who remembers a seal may have looked before it was taken off.
local function raise_floor(floor)
  local records = call('HVALS', INSTANCES)
  for i = 1, #records do
    local inst = parse_instance('', records[i])
    if not released(inst) or inst.pins > 0 then floor = math.max(floor, inst.ordinal + 1) end
  end
  meta.floor = floor
  call('HSET', META, 'floor', num(floor))
end

-- What the same request ended before, when its answer was lost on the way.
local function ended_before(name, reply)
  local dead = call('ZRANGEBYLEX', TOMBS, '[' .. name .. SEP, '(' .. name .. AFTER_SEP)
  for i = 1, #dead do
    local room = split(dead[i])[2]
    local _, request, record = last_end(room)
    if request == REQUEST then append(reply, { room, record }) end
  end
  return reply
end

local PLAN_FIELDS = { 'version', 'desired', 'target', 'emptywhen', 'body', 'stored', 'guards' }

-- A plan's guards are kept as "below until;below until;…", in rising order of both.
local function guards_of(text)
  local guards = {}
  for below, till in string.gmatch(text, '(%d+) (%d+);') do
    table.insert(guards, { below = tonumber(below), till = tonumber(till) })
  end
  return guards
end

local function plan_reply()
  local plan = call('HMGET', PLAN, unpack(PLAN_FIELDS))
  if not plan[1] then return { '0', plan[2] or '0', '0', '', '', '0', '' } end
  return plan
end

-- A room that has a home is no demand any more.
local function satisfy(room)
  if call('ZREM', DEMAND, room) == 1 then call('HDEL', WANTED, room) end
end

-- Forgets up to n refusals whose time is over.
local function forget_demand(n)
  local old = call('ZRANGEBYSCORE', DEMAND, '-inf', num(meta.now - DEMAND_TTL), 'LIMIT', 0, n)
  if #old > 0 then
    call('ZREM', DEMAND, unpack(old))
    call('HDEL', WANTED, unpack(old))
  end
end

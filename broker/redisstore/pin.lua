-- Pins and tombstones: how they are kept.

local PIN = { 'instance', 'incarnation', 'epoch', 'state', 'expected', 'reserved', 'created', 'since', 'seen', 'at', 'request', 'doc' }
local PIN_NUMBERS = { epoch = true, expected = true, reserved = true, created = true, since = true, seen = true }

local function parse_pin(room, record)
  local values, pin = split(record), { room = room }
  for i = 1, #PIN do
    local name = PIN[i]
    if PIN_NUMBERS[name] then pin[name] = tonumber(values[i]) else pin[name] = values[i] end
  end
  return pin
end

local function pin_record(pin)
  local values = {}
  for i = 1, #PIN do
    local name = PIN[i]
    if PIN_NUMBERS[name] then values[i] = num(pin[name]) else values[i] = pin[name] end
  end
  return table.concat(values, SEP)
end

local function get_pin(room)
  local record = call('HGET', PINS, room)
  return record and parse_pin(room, record)
end

local function age_member(pin)
  return pin.instance .. SEP .. format('%016.0f', pin.created) .. SEP .. pin.room
end

-- Enters a new pin and returns its record.
local function put_pin(pin)
  local record = pin_record(pin)
  call('HSET', PINS, pin.room, record)
  call('ZADD', ROOMS, 0, pin.room)
  call('ZADD', HOMES, 0, pin.instance .. SEP .. pin.room)
  call('ZADD', AGES, 0, age_member(pin))
  return record
end

-- Forgets up to n tombstones whose time is over.
local function bury(n)
  local old = call('ZRANGEBYSCORE', DEAD, '-inf', '(' .. num(meta.now - TOMBSTONE_TTL), 'LIMIT', 0, n)
  for i = 1, #old do
    local v = split(old[i])
    call('ZREM', DEAD, old[i])
    call('ZREM', TOMBS, old[i])
    local last = call('HGET', ENDED, v[2])
    if last and string.match(last, '^[^\31]*') == num(tonumber(v[3])) then call('HDEL', ENDED, v[2]) end
  end
end

-- Leaves a tombstone of a pin.
local function entomb(pin, cause)
  local member = table.concat({ pin.instance, pin.room, format('%016.0f', pin.epoch), num(meta.now), cause }, SEP)
  call('ZADD', TOMBS, 0, member)
  call('ZADD', DEAD, num(meta.now), member)
  call('HSET', ENDED, pin.room, num(pin.epoch) .. SEP .. num(meta.now) .. SEP .. REQUEST .. SEP .. pin_record(pin))
  bury(8)
end

-- Ends a pin and leaves its tombstone. Its instance's counters are the caller's to save.
local function end_pin(pin, inst, cause)
  call('HDEL', PINS, pin.room)
  call('ZREM', ROOMS, pin.room)
  call('ZREM', HOMES, pin.instance .. SEP .. pin.room)
  call('ZREM', AGES, age_member(pin))
  if inst then
    inst.pins = inst.pins - 1
    inst.reserved = inst.reserved - pin.reserved
  end
  entomb(pin, cause)
end

-- The last end of a room within the tombstones' time: epoch, request and record.
local function last_end(room)
  local record = call('HGET', ENDED, room)
  if not record then return nil end
  local epoch, ended, request, pin = string.match(record, '^([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$')
  if meta.now - tonumber(ended) > TOMBSTONE_TTL then return nil end
  return tonumber(epoch), request, pin
end

-- The names of an instance's rooms after a name, in order, at most n (-1: all).
local function rooms_of(name, after, n)
  local from = '[' .. name .. SEP
  if after ~= '' then from = '(' .. name .. SEP .. after end
  local homes = call('ZRANGEBYLEX', HOMES, from, '(' .. name .. AFTER_SEP, 'LIMIT', 0, n)
  for i = 1, #homes do homes[i] = string.sub(homes[i], #name + 2) end
  return homes
end

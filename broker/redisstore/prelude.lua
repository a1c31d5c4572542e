-- What every step begins with. A step's own file follows it; STEP_CAP and the
-- lifetimes stand before it.
--
-- All keys of a step are declared, so that a cluster refuses it while their slot
-- is being moved, instead of running it on a half of them. Values are lists of
-- fields parted by SEP, which the caller keeps out of the fields.
-- Numbers are written by num: Lua's own form of them keeps 14 digits.
local META, PINS, ROOMS, HOMES, AGES, INSTANCES = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local TOMBS, DEAD, ENDED, DEMAND, WANTED, PLAN = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local TERM, REQUEST = ARGV[1], ARGV[2]
local call, format = redis.call, string.format
local SEP, AFTER_SEP = '\31', '\32'
local NEVER = -1
local CHUNK = 500 -- unpack puts only so much on the stack

local function num(n) return format('%.0f', n) end

local function split(s)
  local out, n, from = {}, 0, 1
  while true do
    local at = string.find(s, SEP, from, true)
    n = n + 1
    if not at then
      out[n] = string.sub(s, from)
      return out, n
    end
    out[n] = string.sub(s, from, at - 1)
    from = at + 1
  end
end

local time = call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- The pool's state: what META holds, with the clock at this step. clock and wall count
-- microseconds, so that frequent steps lose no time; now is the clock in milliseconds.
local meta = { phase = 'rebuilding', term = '', history = '', now = 0, clock = 0, wall = micros, gap = NEVER, floor = 0, epoch = 0 }

local function load_meta()
  local v = call('HMGET', META, 'term', 'history', 'phase', 'clock', 'wall', 'gap', 'floor', 'epoch')
  if not v[1] then return false end
  meta.term, meta.history, meta.phase = v[1], v[2], v[3]
  meta.clock, meta.wall, meta.gap = tonumber(v[4]), tonumber(v[5]), tonumber(v[6])
  meta.now = math.floor(meta.clock / 1000)
  meta.floor, meta.epoch = tonumber(v[7]), tonumber(v[8])
  return true
end

-- Advances the pool's clock. A reading step goes on with the clock as it was when
-- the server takes no writes: an early time errs on the safe side, whereas
-- one that is not remembered could be taken back by a wall clock that jumps.
local function advance(reading)
  local passed, clock, gap = math.max(0, micros - meta.wall), meta.clock, meta.gap
  clock = clock + math.min(passed, STEP_CAP)
  if passed > STEP_CAP then gap = math.floor(clock / 1000) end
  local write = call
  if reading then write = redis.pcall end
  local done = write('HSET', META, 'clock', num(clock), 'wall', num(micros), 'gap', num(gap))
  if type(done) == 'number' then
    meta.clock, meta.now, meta.wall, meta.gap = clock, math.floor(clock / 1000), micros, gap
  elseif string.find(done.err, 'READONLY', 1, true) then
    call('HSET', META, 'gap', num(meta.gap)) -- a replica's old data is no answer
  end
end

-- Returns the server's replication history, or nil and the reason.
local function history()
  local info = redis.pcall('INFO', 'replication')
  if type(info) == 'table' then return nil, info.err or 'no answer' end
  local id = string.match(info, 'master_replid:(%w+)')
  return id, 'it does not tell its master_replid'
end

-- Returns the refusal when the store holds no history that was built on it.
local function lost()
  local known = load_meta()
  local id, why = history()
  if not id then return { 'noinfo', why } end
  if not known or meta.history ~= id then return { 'lost' } end
end

-- Returns the refusal when the caller's term is not the present one, else
-- advances the clock.
local function enter()
  local refused = lost()
  if refused then return refused end
  if meta.term ~= TERM then return { 'term' } end
  advance(false)
end

local function state_reply()
  return { meta.term, meta.phase, num(meta.now), num(meta.gap), num(meta.floor) }
end

local function append(reply, items)
  local n = #reply
  for i = 1, #items do reply[n + i] = items[i] end
  return reply
end

-- 3: room, 4: epoch.
local refused = enter()
if refused then return refused end
local pin = get_pin(ARGV[3])
if not pin or num(pin.epoch) ~= ARGV[4] then return { 'stale' } end
if pin.state == 'creating' then
  pin.state, pin.since = 'live', meta.now
  call('HSET', PINS, pin.room, pin_record(pin))
end
return { 'ok', pin_record(pin) }

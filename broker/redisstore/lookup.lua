-- 3: room, 4: touch. The frequent step: only META and PINS, no term, and the server's
-- history is asked only for a room that is not found: it may have been lost.
if load_meta() then advance(true) end
local record = call('HGET', PINS, ARGV[3])
if not record then
  local refused = lost()
  if refused then return refused end
  return append({ 'noroom' }, state_reply())
end
if ARGV[4] ~= '' then
  local pin = parse_pin(ARGV[3], record)
  if pin.seen < meta.now then
    pin.seen = meta.now
    local touched = pin_record(pin)
    if type(redis.pcall('HSET', PINS, ARGV[3], touched)) == 'number' then record = touched end
  end
end
return append({ 'ok', record }, state_reply())

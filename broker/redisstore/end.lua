-- 3: room, 4: epoch, 5: cause, 6: begin, 7: ttl ms.
local refused = enter()
if refused then return refused end
local room, epoch, cause = ARGV[3], ARGV[4], ARGV[5]
local CAUSES = { refused = true, teardown = true, gone = true, expired = true } -- the others are no caller's
local _, request, record = last_end(room)
if request == REQUEST then return { 'ok', record } end
local pin = get_pin(room)
if not pin then return { 'noroom' } end
if num(pin.epoch) ~= epoch and not (cause == 'teardown' and epoch == '0')
  or not CAUSES[cause]
  or cause == 'refused' and pin.state ~= 'creating'
  or cause == 'gone' and pin.since >= tonumber(ARGV[6])
  or cause == 'expired' and (pin.state ~= 'live' or meta.now - pin.seen <= tonumber(ARGV[7])) then
  return { 'stale' }
end
local inst = get_instance(pin.instance)
end_pin(pin, inst, cause)
if inst then save(inst) end
return { 'ok', pin_record(pin) }

-- 3: instance.
if not load_meta() then return { 'ok' } end
advance(false)
bury(500)
local reply = { 'ok' }
local dead = call('ZRANGEBYLEX', TOMBS, '[' .. ARGV[3] .. SEP, '(' .. ARGV[3] .. AFTER_SEP)
for i = 1, #dead do
  local v = split(dead[i])
  if meta.now - tonumber(v[4]) <= TOMBSTONE_TTL then
    append(reply, { v[2], num(tonumber(v[3])), v[4], v[5] })
  end
end
return reply

local refused = lost()
if refused then return refused end
advance(false)
return append({ 'ok' }, state_reply())

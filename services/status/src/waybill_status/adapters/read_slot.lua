-- The server's id, its clock and the slot must come from one moment of one server.
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call(
  'HMGET', KEYS[1], 'run_id', 'version', 'at', 'confirmed_at', 'mark', 'slot')
local time = redis.call('TIME')
local age = found[4] and (time[1] * 1000 + math.floor(time[2] / 1000) - found[4])
return {run_id, found[1], found[2], found[3], age, found[5], found[6]}

-- The entries count only with the slot as it is at the same moment.
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local found = redis.call('HMGET', KEYS[1], 'run_id', 'version', 'at', 'confirmed_at', 'mark')
local counts, entries, left = {}, {}, tonumber(ARGV[1])
for i = 2, #KEYS do counts[i - 1] = redis.call('ZCARD', KEYS[i]) end
for i = 2, #ARGV, 3 do
  if left > 0 then
    local key = KEYS[tonumber(ARGV[i])]
    local some = redis.call('ZRANGE', key, ARGV[i + 1], ARGV[i + 2], 'BYSCORE', 'LIMIT', 0, left)
    for _, entry in ipairs(some) do entries[#entries + 1] = entry end
    left = left - #some
  end
end
return {run_id, found[1], found[2], found[3], false, found[5], counts, entries}

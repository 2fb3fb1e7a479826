local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local partition, position, at, slot, rebuilt = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local wake, limit, mark, topic = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local finder = ARGV[10] .. '@' .. run_id
local stored = redis.call('HMGET', KEYS[1], 'run_id', 'position', 'mark', 'topic', 'finder')
local valid = stored[1] == run_id and stored[4] == topic
if valid and tonumber(stored[2]) > position then return 'newer' end
if not valid and (rebuilt == '0' or stored[5] ~= finder) then
  redis.call('HSET', KEYS[1], 'finder', finder)
  return 'lost'
end
if slot == '' and stored[3] ~= mark then return 'stale' end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1], 'at', at, 'confirmed_at', now)
redis.call('HSET', KEYS[1], 'topic', topic, 'partition', partition, 'position', position)
if slot == '' then return 'written' end
if rebuilt == '1' then
  for i = 3, #KEYS do redis.call('DEL', KEYS[i]) end
end
redis.call('HSET', KEYS[1], 'run_id', run_id, 'slot', slot, 'mark', mark, 'finder', '')
redis.call('HINCRBY', KEYS[1], 'version', 1)
local i = 11
while i < #ARGV do
  local key, what, count = KEYS[tonumber(ARGV[i])], ARGV[i + 1], tonumber(ARGV[i + 2])
  i = i + 3
  if what == 'history' then
    local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
    local score = tonumber(newest[2]) or 0
    for batch = 1, count do
      redis.call('ZADD', key, score + batch, ARGV[i + batch - 1])
    end
    redis.call('ZREMRANGEBYRANK', key, 0, -limit - 1)
    i = i + count
  else
    if what == 'replace' then redis.call('DEL', key) end
    for entry = 1, count do
      redis.call('ZADD', key, ARGV[i + 2 * entry - 2], ARGV[i + 2 * entry - 1])
    end
    i = i + 2 * count
  end
end
redis.call('PUBLISH', KEYS[2], wake)
return 'written'

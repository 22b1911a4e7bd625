-- What the store in Redis does in one step. redis_store.py sends it, and lists the keys it works with.
--
-- Called with the prefix of all keys, this process, the milliseconds of a registration and of a lease, the epoch (-1:
-- any) and operations as msgpack; returns their results. A string as a result says why nothing of the operation was done.
--
-- A script is not rolled back. Redis refuses one for want of memory, disk or rights at its first write or not at all,
-- so every operation looks at all it needs before it writes.

local P, me, lease_ms, hold_ms, epoch = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local call, time, op = redis.call, redis.call('TIME'), {}
local clock = time[1] * 1000 + math.floor(time[2] / 1000)

-- Processes and leases. A lease is a process's as long as the process is registered, so that one call renews them all.

local function lives(owner)
  return tonumber(call('ZSCORE', P .. 'processes', owner) or 0) > clock
end

local function holder(name)
  local owner, token, ends = unpack(call('HMGET', P .. 'lease:' .. name, 'owner', 'token', 'ends'))
  if owner and lives(owner) and tonumber(ends) > clock then return owner, tonumber(token) end
end

-- End the lease, and give it to who has waited longest in a process that lives.
local function hand_on(name)
  local owner, waiter = call('HGET', P .. 'lease:' .. name, 'owner'), nil
  if owner then call('SREM', P .. 'held:' .. owner, name) end
  call('DEL', P .. 'lease:' .. name)
  repeat
    waiter = call('LPOP', P .. 'queue:' .. name)
    owner = waiter and waiter:match('^%w+')
  until not waiter or lives(owner)
  if waiter then
    local token = call('INCR', P .. 'tokens')
    local ends = clock + (waiter:sub(-1) == '!' and 1e12 or hold_ms) -- held for good: some 30 years
    call('HSET', P .. 'lease:' .. name, 'owner', owner, 'waiter', waiter, 'token', token, 'ends', ends)
    call('SADD', P .. 'held:' .. owner, name)
    call('PUBLISH', P .. 'wake:' .. owner, waiter .. ' ' .. token)
  end
end

local function hand_on_all(owner)
  for _, name in ipairs(call('SMEMBERS', P .. 'held:' .. owner)) do hand_on(name) end
end

-- Whoever was away for too long holds nothing any more, also when nobody else has asked for it meanwhile.
local function register()
  local ends = tonumber(call('ZSCORE', P .. 'processes', me) or 0)
  if ends < clock + lease_ms * 2 / 3 then call('ZADD', P .. 'processes', clock + lease_ms, me) end
  if ends <= clock then hand_on_all(me) end
end

-- Returns the token (0: wait) and the milliseconds after which to ask again, if nothing is heard until then.
function op.lease(name, waiter)
  local lease, queue = P .. 'lease:' .. name, P .. 'queue:' .. name
  if call('HGET', lease, 'waiter') ~= waiter and not call('LPOS', queue, waiter) then call('RPUSH', queue, waiter) end
  if not holder(name) then hand_on(name) end
  local owner, holds, token, ends = unpack(call('HMGET', lease, 'owner', 'waiter', 'token', 'ends'))
  ends = math.min(tonumber(ends), tonumber(call('ZSCORE', P .. 'processes', owner)))
  return {holds == waiter and tonumber(token) or 0, ends - clock}
end

function op.leave(name, waiter)
  call('LREM', P .. 'queue:' .. name, 0, waiter)
  if call('HGET', P .. 'lease:' .. name, 'waiter') == waiter then hand_on(name) end
end

function op.open(layout)
  local found = tonumber(call('GET', P .. 'layout') or layout)
  if found <= layout then call('SET', P .. 'layout', layout) end
  return found
end

function op.close()
  call('ZADD', P .. 'processes', 0, me)
  hand_on_all(me)
  if call('ZCARD', P .. 'pending:' .. me) == 0 then call('ZREM', P .. 'processes', me) end
end

function op.nothing() end

-- Events

local function enqueue(key, body, runs, now)
  local event = P .. 'event:' .. key
  local order = call('INCR', P .. 'order')
  call('HSET', event, 'body', body, 'runs', runs, 'owner', me, 'order', order, 'at', now)
  call('HDEL', event, 'done')
  call('ZREM', P .. 'done', key)
  call('ZADD', P .. 'pending:' .. me, order, key)
end

local function finish(key, now)
  local event = P .. 'event:' .. key
  local owner, runs, answer = unpack(call('HMGET', event, 'owner', 'runs', 'answer'))
  if not owner then return end
  call('DEL', event) -- and made anew: a hash takes far more memory once something long was in it
  call('HSET', event, 'owner', owner, 'runs', runs, 'done', now)
  if answer then call('HSET', event, 'answer', answer) end
  call('ZREM', P .. 'pending:' .. me, key)
  call('ZADD', P .. 'done', now, key)
end

local function not_ours(key)
  local owner = call('HGET', P .. 'event:' .. key, 'owner')
  if owner and owner ~= me then return key .. ' is another process\'s event by now.' end
end

function op.move(now, shard, session, seq, ...)
  local cursor = P .. 'cursor:' .. shard
  local before, reached = unpack(call('HMGET', cursor, 'session', 'seq'))
  if before == session then seq = math.max(seq, tonumber(reached)) else call('HSET', cursor, 'started', now) end
  call('HSET', cursor, 'session', session, 'seq', seq, 'saved', now, ...)
end

function op.accept(now, key, body, runs, cursor)
  if cursor then op.move(unpack(cursor)) end
  if not key or call('EXISTS', P .. 'event:' .. key) == 1 then return 0 end
  enqueue(key, body, runs, now)
  return 1
end

function op.pending()
  local events = {}
  for i, key in ipairs(call('ZRANGE', P .. 'pending:' .. me, 0, -1)) do
    events[i] = {key, unpack(call('HMGET', P .. 'event:' .. key, 'body', 'runs'))}
  end
  return events
end

-- Take the events of processes whose registration was over by then (false: by now).
function op.claim(by)
  local taken = {}
  for _, owner in ipairs(call('ZRANGEBYSCORE', P .. 'processes', '-inf', by or clock)) do
    local keys = owner ~= me and call('ZRANGE', P .. 'pending:' .. owner, 0, -1, 'WITHSCORES') or {}
    for i = 1, #keys, 2 do
      local event = P .. 'event:' .. keys[i]
      call('HSET', event, 'owner', me)
      call('ZADD', P .. 'pending:' .. me, keys[i + 1], keys[i])
      taken[#taken + 1] = {keys[i], call('HGET', event, 'body'), call('HGET', event, 'runs'), tonumber(keys[i + 1])}
    end
    if owner ~= me then
      call('DEL', P .. 'pending:' .. owner)
      call('ZREM', P .. 'processes', owner)
      hand_on_all(owner)
    end
  end
  table.sort(taken, function(a, b) return a[4] < b[4] end)
  return taken
end

function op.begin(key)
  local refused, event = not_ours(key), P .. 'event:' .. key
  if not refused and call('EXISTS', event) == 1 then call('HINCRBY', event, 'runs', 1) end
  return refused
end

function op.release()
  for _, key in ipairs(call('ZRANGE', P .. 'pending:' .. me, 0, -1)) do call('HSET', P .. 'event:' .. key, 'runs', 0) end
end

function op.answered(key, answer)
  if call('EXISTS', P .. 'event:' .. key) == 1 then call('HSET', P .. 'event:' .. key, 'answer', answer) end
end

function op.answer(key)
  return call('HMGET', P .. 'event:' .. key, 'answer')
end

function op.figures()
  local count, oldest = 0, false
  for _, owner in ipairs(call('ZRANGE', P .. 'processes', 0, -1)) do
    count = count + call('ZCARD', P .. 'pending:' .. owner)
    local key = call('ZRANGE', P .. 'pending:' .. owner, 0, 0)[1]
    local at = key and call('HGET', P .. 'event:' .. key, 'at')
    if at and (not oldest or tonumber(at) < tonumber(oldest)) then oldest = at end
  end
  return {count, oldest, call('ZCARD', P .. 'failed'), tonumber(call('INFO', 'memory'):match('used_memory:(%d+)'))}
end

function op.pin(name, key, replace)
  call(replace and 'HSET' or 'HSETNX', P .. 'pins', name, key)
  return {call('HGET', P .. 'pins', name)}
end

function op.pinned(name)
  return {call('HGET', P .. 'pins', name)}
end

function op.cursor(shard)
  return call('HMGET', P .. 'cursor:' .. shard, 'fingerprint', 'session', 'seq', 'resume_url', 'me', 'started')
end

function op.forget(now, shard, why)
  local since = call('HGET', P .. 'cursor:' .. shard, 'saved')
  if since then call('RPUSH', P .. 'gaps', cjson.encode({shard = shard, since = since, till = now, why = why})) end
  call('DEL', P .. 'cursor:' .. shard)
end

-- The failed list

local function drop_failed(key)
  call('ZREM', P .. 'failed', key)
  call('DEL', P .. 'failed:' .. key)
end

function op.fail(now, most, key, body, kind, text, place)
  local refused = not_ours(key)
  if refused then return refused end
  local runs, done = unpack(call('HMGET', P .. 'event:' .. key, 'runs', 'done'))
  call('HSET', P .. 'failed:' .. key, 'body', body, 'at', now, 'runs', runs or 0, 'applied', done and 1 or 0,
    'type', kind, 'text', text, 'place', place)
  call('ZADD', P .. 'failed', call('INCR', P .. 'order'), key)
  finish(key, now)
  for _, old in ipairs(call('ZRANGE', P .. 'failed', 0, -most - 1)) do drop_failed(old) end
end

function op.failed()
  local found = {}
  for i, key in ipairs(call('ZRANGE', P .. 'failed', 0, -1)) do
    found[i] = {key, unpack(call('HMGET', P .. 'failed:' .. key, 'at', 'runs', 'applied', 'type', 'text', 'place'))}
  end
  return found
end

function op.take_failed(now, keys, again)
  local count = 0
  for _, key in ipairs(#keys > 0 and keys or call('ZRANGE', P .. 'failed', 0, -1)) do
    local body, applied = unpack(call('HMGET', P .. 'failed:' .. key, 'body', 'applied'))
    if body and again and applied == '0' then enqueue(key, body, 0, now) end
    if body then count = count + 1 end
    drop_failed(key)
  end
  return count
end

-- Records. `entries` says in which sorted sets a record stands, and `change` keeps them so: nothing walks all records.

local function entries(id)
  local version, shown, channel, message, guild, expires, numbers = unpack(
    call('HMGET', P .. 'record:' .. id, 'version', 'shown', 'channel', 'message', 'guild', 'expires', 'numbers'))
  if not version then return {} end
  local zsets, name, key = {records = 0}, id:match('^([^:]*):(.*)$')
  if message then zsets['channel:' .. channel], zsets['message:' .. message] = 0, 0 end
  if message and tonumber(shown) < tonumber(version) then zsets.behind = 0 end
  if guild then zsets['guild:' .. guild] = 0 end
  if expires ~= '' then zsets['expiry:' .. name] = expires end
  numbers = cmsgpack.unpack(numbers)
  for i = 1, #numbers, 2 do
    local ends = 1
    while ends do -- the whole name, and each beginning of the key that a query's prefix may be
      zsets['top:' .. name .. ':' .. numbers[i] .. ':' .. key:sub(1, ends - 1)] = numbers[i + 1]
      ends = key:find(':', ends + 1, true)
    end
  end
  return zsets
end

local function change(id, fields, afresh)
  local old = entries(id)
  if afresh or not fields then call('DEL', P .. 'record:' .. id) end
  if fields then call('HSET', P .. 'record:' .. id, unpack(fields)) end
  local new = entries(id)
  for zset, score in pairs(new) do
    if old[zset] ~= score then call('ZADD', P .. zset, score, id) end
    if zset:sub(1, 7) == 'expiry:' then call('SADD', P .. 'expiring', zset:sub(8)) end
  end
  for zset in pairs(old) do
    if not new[zset] then call('ZREM', P .. zset, id) end
  end
end

local FIELDS = {'version', 'model', 'data', 'shown', 'channel', 'message', 'ephemeral', 'guild', 'expires'}
local function row(id, now)
  local found = call('HMGET', P .. 'record:' .. id, unpack(FIELDS))
  found[#FIELDS + 1] = id
  if found[1] and (found[9] == '' or tonumber(found[9]) > now) then return found end
end

local function set_timer(key, due, body)
  if due then
    call('ZADD', P .. 'timers', due, key)
    call('HSET', P .. 'timer', key, body)
  else
    call('ZREM', P .. 'timers', key)
    call('HDEL', P .. 'timer', key)
  end
end

function op.commit(now, records, done, timers, fences)
  for _, fence in ipairs(fences) do
    local owner, token = holder(fence[1])
    if owner ~= me or token ~= fence[2] then return 'the lease ' .. fence[1] .. ' is not held any more.' end
  end
  local refused = done and not_ours(done)
  if refused then return refused end
  for _, record in ipairs(records) do
    local found = row(record[1], now)
    if tonumber(found and found[1] or 0) ~= record[2] then return record[1] .. ' was changed since it was loaded.' end
  end
  for _, record in ipairs(records) do change(record[1], record[3], record[2] == 0) end
  for _, timer in ipairs(timers) do set_timer(unpack(timer)) end
  if done then finish(done, now) end
end

function op.shown(id, version, fields)
  local shown = call('HGET', P .. 'record:' .. id, 'shown')
  if not shown then return end
  fields[#fields + 1] = 'shown'
  fields[#fields + 1] = math.max(version, tonumber(shown))
  change(id, fields)
end

function op.load(id, now)
  return {row(id, now)}
end

function op.behind(now)
  local rows = {}
  for _, id in ipairs(call('ZRANGE', P .. 'behind', 0, -1)) do rows[#rows + 1] = row(id, now) end
  return rows
end

-- The rows of a sorted set within these ranges; with `top` those highest there come before them, and the one `head`.
function op.find(now, limit, zset, ranges, top, head)
  local rows, seen = {}, {}
  local function add(id)
    if not seen[id] then rows[#rows + 1] = row(id, now) end
    seen[id] = true
  end
  local function walk(command, key, low, high)
    local from, ids = 0, {}
    while #rows < limit do
      ids = call(command, P .. key, low, high, 'LIMIT', from, math.min(limit, 500))
      for i = 1, math.min(#ids, limit - #rows) do add(ids[i]) end
      if #ids == 0 then return end
      from = from + #ids
    end
  end
  if top then
    walk('ZRANGEBYSCORE', top, '-inf', '+inf')
    add(head)
  end
  for _, range in ipairs(ranges) do walk('ZRANGEBYLEX', zset, range[1], range[2]) end
  return rows
end

-- From one name to the next, past all of its records.
function op.names()
  local names, low = {}, '-'
  while true do
    local id = call('ZRANGEBYLEX', P .. 'records', low, '+', 'LIMIT', 0, 1)[1]
    if not id then return names end
    names[#names + 1] = id:match('^[^:]*')
    low = '(' .. names[#names] .. ';'
  end
end

function op.clean_up(guild, channel, messages)
  local gone = {}
  for _, message in ipairs(messages) do
    for _, id in ipairs(call('ZRANGE', P .. 'message:' .. message, 0, -1)) do
      if call('HGET', P .. 'record:' .. id, 'channel') == channel then gone[#gone + 1] = id end
    end
  end
  if #messages == 0 then
    gone = call('ZRANGE', P .. (channel and 'channel:' .. channel or 'guild:' .. guild), 0, -1)
  end
  for _, id in ipairs(gone) do change(id) end
  return #gone
end

-- What is to happen later

-- The timers as keys and times by turns, and then their bodies.
local function with_bodies(timers)
  for i = 1, #timers, 2 do timers[#timers + 1] = call('HGET', P .. 'timer', timers[i]) end
  return timers
end

function op.timers()
  return with_bodies(call('ZRANGE', P .. 'timers', 0, -1, 'WITHSCORES'))
end

function op.due(now, most, names)
  local expired = {}
  for _, name in ipairs(names) do
    local ids = call('ZRANGEBYSCORE', P .. 'expiry:' .. name, '-inf', now, 'LIMIT', 0, most - #expired)
    for _, id in ipairs(ids) do expired[#expired + 1] = row(id, -1) end
  end
  return {with_bodies(call('ZRANGEBYSCORE', P .. 'timers', '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)), expired}
end

-- Make events of what is still as it was when it was found due, and return which.
function op.fire(now, found)
  local fired = {}
  for i, each in ipairs(found) do
    local what, id, was, key, body = unpack(each)
    local record = call('HMGET', P .. 'record:' .. id, 'version', 'expires')
    if what == 'timer' and call('ZSCORE', P .. 'timers', id) == was then
      set_timer(id)
      enqueue(key, body, 1, now)
      fired[#fired + 1] = i - 1
    elseif what == 'record' and record[1] and record[1] .. ' ' .. record[2] == was then
      change(id)
      enqueue(key, body, 1, now)
      fired[#fired + 1] = i - 1
    end
  end
  return fired
end

function op.purge(ranges, before, most, spared)
  local count, spare = 0, {}
  for _, range in ipairs(ranges) do
    for _, key in ipairs(call('ZRANGEBYSCORE', P .. 'done', range[1], range[2], 'LIMIT', 0, most)) do
      call('DEL', P .. 'event:' .. key)
      count = count + call('ZREM', P .. 'done', key)
    end
  end
  for _, name in ipairs(spared) do spare[name] = true end
  for _, name in ipairs(call('SMEMBERS', P .. 'expiring')) do
    local ids = spare[name] and {} or call('ZRANGEBYSCORE', P .. 'expiry:' .. name, '-inf', before, 'LIMIT', 0, most)
    for _, id in ipairs(ids) do change(id) end
    count = count + #ids
  end
  return count
end

-- A call that was sent before its process lost an answer and went on without it comes too late.
local reached = tonumber(call('GET', P .. 'epoch:' .. me) or 0)
if epoch >= 0 and epoch < reached then return {err = 'STALE call, sent before an answer was lost'} end
if epoch > reached then call('SET', P .. 'epoch:' .. me, epoch, 'EX', 86400) end

pcall(register)
local results, failure = {}, nil
for i = 5, #ARGV do
  local args, worked, result = cmsgpack.unpack(ARGV[i]), false, nil
  -- After one that was refused none is done: a cursor must not pass an event.
  if not failure then worked, result = pcall(op[args[1]], unpack(args, 2)) end
  if not failure and not worked then failure = {err = type(result) == 'table' and result.err or tostring(result)} end
  results[#results + 1] = failure or result or 0
end
return results

-- Wake as many sleepers of each queue as it has work for, those first who have slept longest.
--
-- KEYS[1]     …:until         sorted set: sleeper -> ms of this server's clock until which it may be
--                             called. Whoever is in it sleeps; who is called is taken out.
-- KEYS[2]     …:asleep        sorted set: sleeper that listens to every queue -> ms since it sleeps
-- KEYS[3]     …:turn          µs of the last call, for any queue, that found too few
-- KEYS[2+2i]  …:asleep:QUEUE  as KEYS[2], for one queue
-- KEYS[3+2i]  …:turn:QUEUE    as KEYS[3], for one queue
-- ARGV[1]     …:calls:        the channel of a process is this and its name; the message is the
--                             number of one of its sleepers
-- ARGV[2]     ms after which a turn may be forgotten
-- ARGV[2+i]   how many tasks the queue got
--
-- Answers how many were called. A process that no longer listens is passed over.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local called = 0

-- The sleeper that has slept longest, off its list; nil if nobody is left.
local function next_of(own, every)
    local mine = redis.call('ZRANGE', own, 0, 0, 'WITHSCORES')
    local any = redis.call('ZRANGE', every, 0, 0, 'WITHSCORES')
    local key, found = own, mine
    if not mine[1] or (any[1] and tonumber(any[2]) < tonumber(mine[2])) then
        key, found = every, any
    end
    if found[1] then
        redis.call('ZREM', key, found[1])
    end
    return found[1]
end

-- A sleeper that listens to two queues is on two lists, but only once in `until`.
local function call(sleeper)
    local allowed = redis.call('ZSCORE', KEYS[1], sleeper)
    if not allowed then
        return false
    end
    redis.call('ZREM', KEYS[1], sleeper)
    local process, number = string.match(sleeper, '^(.*)/(%d+)$')
    return tonumber(allowed) > now and redis.call('PUBLISH', ARGV[1] .. process, number) > 0
end

for i = 1, #ARGV - 2 do
    local left = tonumber(ARGV[2 + i])
    while left > 0 do
        local sleeper = next_of(KEYS[2 + 2 * i], KEYS[2])
        if not sleeper then
            break
        end
        if call(sleeper) then
            left, called = left - 1, called + 1
        end
    end
    if left > 0 then
        -- Somebody may be about to sleep, and has looked before this work was there.
        redis.call('SET', KEYS[3 + 2 * i], time[1] .. '.' .. time[2], 'PX', ARGV[2])
        redis.call('SET', KEYS[3], time[1] .. '.' .. time[2], 'PX', ARGV[2])
    end
end
return called

-- Sleep on. Always writes something: a server that has become a replica refuses, and is left.
--
-- KEYS[1]    …:until           as in wake.lua
-- KEYS[1+i]  …:asleep[:QUEUE]  every list that a sleeper of this process is on
-- ARGV[1]    ms for which the sleepers may be called from now on
-- ARGV[2]    ms after which lists may be forgotten
-- ARGV[2+i]  the sleepers of this process
--
-- Answers those of them that are not known to sleep: what was known of them was flushed, or they
-- were called this very moment.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lost = {}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
for i = 3, #ARGV do
    if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
        redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i])
    else
        lost[#lost + 1] = ARGV[i]
    end
end
for i = 1, #KEYS do
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
end
return lost

-- Get up, and be on no list.
--
-- KEYS[1]    …:until           as in wake.lua
-- KEYS[1+i]  …:asleep[:QUEUE]  the lists that this sleeper is on
-- ARGV[1]    the sleeper
--
-- Answers 1 if it slept, 0 if somebody has called it.

local slept = redis.call('ZREM', KEYS[1], ARGV[1])
for i = 2, #KEYS do
    redis.call('ZREM', KEYS[i], ARGV[1])
end
return slept

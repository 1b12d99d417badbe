-- Lie down, unless there was a call for nobody since: then look for work once more.
--
-- KEYS[1]    …:until         as in wake.lua
-- KEYS[2]    …:turns         as in wake.lua
-- KEYS[2+i]  …:asleep[:QUEUE]  the lists that this ear is on
-- ARGV[1]    the ear: PROCESS/NUMBER
-- ARGV[2]    ms for which it may be called unless it says so again (beat.lua)
-- ARGV[3]    ms after which lists may be forgotten
-- ARGV[4]    the turns that it saw before it last looked for work; '?' if it saw none
-- ARGV[4+i]  the queues, '' for any, in the order of their keys
--
-- Answers nothing if it sleeps now, else the turns that it must look after.

local turns = redis.call('HMGET', KEYS[2], unpack(ARGV, 5))
for i = 1, #turns do
    turns[i] = turns[i] or ''
end
local seen = table.concat(turns, ' ')
if seen ~= ARGV[4] then
    return seen
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for i = 3, #KEYS do
    redis.call('ZADD', KEYS[i], now, ARGV[1])
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
end
return false

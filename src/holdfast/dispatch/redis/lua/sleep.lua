-- Lie down, unless there was a call for nobody since: then look for work once more.
--
-- KEYS[1]     …:until           as in wake.lua
-- KEYS[2i]    …:asleep[:QUEUE]  the lists that this sleeper is on
-- KEYS[2i+1]  …:turn[:QUEUE]    as in wake.lua, for the same queues
-- ARGV[1]     the sleeper: PROCESS/NUMBER
-- ARGV[2]     ms for which it may be called unless it says so again (beat.lua)
-- ARGV[3]     ms after which lists may be forgotten
-- ARGV[4]     the turns that it saw before it last looked for work; '?' if it saw none
--
-- Answers nothing if it sleeps now, else the turns that it must look after.

local turns = {}
for i = 3, #KEYS, 2 do
    turns[#turns + 1] = redis.call('GET', KEYS[i]) or ''
end
local seen = table.concat(turns, ' ')
if seen ~= ARGV[4] then
    return seen
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for i = 2, #KEYS, 2 do
    redis.call('ZADD', KEYS[i], now, ARGV[1])
    redis.call('PEXPIRE', KEYS[i], ARGV[3])
end
return false

-- Get up without having been called.
--
-- KEYS[1]    …:until           as in wake.lua
-- KEYS[1+i]  …:asleep[:QUEUE]  the lists that this ear is on
-- ARGV[1]    the ear

for i = 1, #KEYS do
    redis.call('ZREM', KEYS[i], ARGV[1])
end
return false

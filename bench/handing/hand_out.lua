-- Take the first ids of a queue, and remember to whom they were handed until they are claimed.
--
-- KEYS[1]  sorted set: the ready tasks of one queue; member the id's 16 bytes, score the rank
-- KEYS[2]  list of two: the ids and the ranks that this claimer was handed last. Its next call
--          shows that PostgreSQL has committed them; if there is none, because it died, a sweep puts
--          them back
-- ARGV[1]  how many
--
-- Answers with the ids in one string, 16 bytes each, and the ranks in another, with commas between:
-- two values are read much quicker than two hundred.
local taken = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
local ids, ranks = {}, {}
for n = 1, #taken, 2 do
    ids[#ids + 1] = taken[n]
    ranks[#ranks + 1] = taken[n + 1]
end
local answer = {table.concat(ids), table.concat(ranks, ',')}
redis.call('DEL', KEYS[2])
redis.call('RPUSH', KEYS[2], answer[1], answer[2])
return answer

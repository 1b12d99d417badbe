-- Nothing of the tables. Functions are made anew after it, each with a search_path of its own
-- (`routines/99_search_path.sql`).
SELECT 1;

-- Names in a function mean what PostgreSQL itself means by them, whoever calls it: somebody who may
-- create functions or operators in a schema on the caller's search_path (`public`, often) could
-- otherwise have his own run instead, with the caller's rights. Also for what older releases left here.
DO $do$
DECLARE
    routine regprocedure;
BEGIN
    FOR routine IN
        SELECT p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = 'holdfast' AND p.prokind = 'f' AND p.prosqlbody IS NULL
        AND pg_has_role(p.proowner, 'USAGE')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', routine);
    END LOOP;
END $do$;

-- Made by `release.py` with the code of the last release (dd262f3). Never edited.
CREATE FUNCTION holdfast.now_us(given bigint DEFAULT NULL::bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.as_time(us bigint) RETURNS timestamp with time zone LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.first_id(at timestamp with time zone) RETURNS uuid LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.new_id() RETURNS uuid LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.lane_of(queue text, requires text[], priority text) RETURNS integer LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.fold_tally(now bigint DEFAULT NULL::bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.as_us(seconds double precision) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.or_null(words text[]) RETURNS text[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.head_start(priority text) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.as_text(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.sleep(process text, queues text[], seconds double precision) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.awake(process text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.wake(queues text[]) RETURNS integer LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.hold_locks(keys text[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.line_up(wanted uuid, rank bigint, lane integer, attempt integer, flags smallint, expires_at bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.settle_locks(keys text[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.change_places(held holdfast.lock) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.state_of(id uuid) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.stored_key(owner text, key text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.shown_key(key text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.take_keys(ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[], until bigint, at bigint, OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]) RETURNS record LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.hold_new_unique_keys(names text[], unique_keys text[]) RETURNS jsonb LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.take_keys_one_by_one(ids uuid[], names text[], unique_keys text[], idempotency_keys text[], fingerprints text[], held_by jsonb, until bigint, at bigint, OUT repeats integer[], OUT firsts uuid[], OUT outcomes text[]) RETURNS record LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.hold_unique_keys(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.add_rows(ids text[], names text[], payloads bytea[], lanes integer[], head_starts bigint[], max_retries bigint[], timeouts double precision[], delays bigint[], run_ats bigint[], expires_in bigint[], expires_at bigint[], retries text[], unique_keys text[], idempotency_keys text[], fingerprints text[], locks text[], owners text[], traces text[], parents text[], tags text[], idempotency_window bigint, now bigint DEFAULT NULL::bigint, locks_later boolean DEFAULT false, calls text[] DEFAULT NULL::text[], callbacks text[] DEFAULT NULL::text[]) RETURNS TABLE(n integer, task_id text, outcome text, state text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.add_alike(ids uuid[], payloads bytea[], name text, lane integer, head_start bigint, max_retries bigint, timeout double precision, retry text, owner text, trace text, parent text, calls text[] DEFAULT NULL::text[], now bigint DEFAULT NULL::bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.answers(ids uuid[], locks text[], repeats integer[], firsts uuid[], outcomes text[], some_known boolean) RETURNS TABLE(n integer, task_id text, outcome text, state text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.add(tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL::bigint) RETURNS TABLE("position" integer, task_id text, outcome text, state text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.submit(name text, payload jsonb DEFAULT '{}'::jsonb, queue text DEFAULT 'default'::text, priority text DEFAULT 'normal'::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_retries integer DEFAULT NULL::integer, timeout interval DEFAULT NULL::interval, unique_key text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, lock text DEFAULT NULL::text, requires text[] DEFAULT '{}'::text[], tags text[] DEFAULT '{}'::text[], owner text DEFAULT NULL::text, head_start interval DEFAULT NULL::interval) RETURNS uuid LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.claim_groups(worker text, queues text[], capabilities text[], max integer, now bigint DEFAULT NULL::bigint) RETURNS TABLE(ids text[], ranks bigint[], payloads bytea[], lane integer, attempt integer, name text, max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint, trace text, owner text, charged integer, crash_count integer, cause text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.take_merged(lanes integer[], lates boolean[], heads bigint[], max integer, at bigint, OUT rows tid[], OUT careful boolean) RETURNS record LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.start_groups(rows tid[], me integer, at bigint) RETURNS TABLE(ids text[], ranks bigint[], payloads bytea[], lane integer, attempt integer, name text, max_retries bigint, timeout double precision, retry text, lock_key text, fence bigint, trace text, owner text, charged integer, crash_count integer, cause text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.raise_floors(lanes integer[], lates boolean[], heads bigint[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.promote(eligible integer[], at bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.promote_due(at bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.end_expired(at bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.take_out(wanted uuid, lane integer, rank bigint, lock_key text, OUT place text, OUT attempt integer, OUT flags smallint, OUT retrying boolean, OUT expires_at bigint) RETURNS record LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.end_idle(ids uuid[], reason text, at bigint, states text[] DEFAULT NULL::text[], ended_as text DEFAULT 'cancelled'::text) RETURNS uuid[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.complete(worker text, ids uuid[], attempts integer[], results bytea[], now bigint DEFAULT NULL::bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.release_keys(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.settle(ids text[], attempts integer[], workers text[], states text[], ends text[], charges integer[], crash_counts integer[], results bytea[], errors text[], delays bigint[], causes text[], reasons text[], needs text[], at bigint) RETURNS TABLE(n integer, holder text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.holder_of(wanted uuid) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.was_saved(wanted uuid, attempt integer, worker text, ended text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.settle_one(wanted uuid, attempt integer, worker text, state text, ended text, charged integer, crash_count integer, result bytea, error text, delay bigint, cause text, reason text, need text, at bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.put_back(wanted uuid, rank bigint, lane integer, attempt integer, flags smallint, lock_key text, expires_at bigint, due bigint, is_retrying boolean, at bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.save(worker text, ids uuid[], attempts integer[], results bytea[], rest_ids text[], rest_attempts integer[], rest_workers text[], states text[], ends text[], charges integer[], crash_counts integer[], rest_results bytea[], errors text[], delays bigint[], causes text[], reasons text[], now bigint DEFAULT NULL::bigint, needs text[] DEFAULT NULL::text[]) RETURNS TABLE(n integer, holder text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.report(ids text[], attempts integer[], workers text[], progress text[], units double precision[], tokens_in bigint[], tokens_out bigint[], logs text[], now bigint DEFAULT NULL::bigint) RETURNS TABLE(n integer, holder text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.cancel(ids text[], states text[], now bigint DEFAULT NULL::bigint, reason text DEFAULT 'cancelled'::text, ended_as text DEFAULT 'cancelled'::text) RETURNS text[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.ask_to_stop(ids uuid[], at bigint) RETURNS uuid[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.requeue(ids text[], states text[], head_starts json, pace double precision, number integer, now bigint DEFAULT NULL::bigint) RETURNS text[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.hurry(wanted uuid, lane integer, rank bigint, lock_key text, due bigint, at bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.renew(wanted uuid, lane integer, name text, unique_key text, lock_key text, rank bigint, due bigint, at bigint, states text[]) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.forget(ids uuid[], states text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.discard(ids text[], states text[]) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.prune(retention bigint, dead_letter_retention bigint, max integer, now bigint DEFAULT NULL::bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.register(worker text, host text, pid integer, version text, queues text[], capabilities text[], capacity integer, load integer, status text, beats bigint, now bigint DEFAULT NULL::bigint, kind text DEFAULT 'python'::text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.beat(worker text, load integer, status text, now bigint DEFAULT NULL::bigint, blocked_by text DEFAULT NULL::text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.bury(worker text, beats bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.retire(worker text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.orphans(max integer) RETURNS text[] LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.pause(queue text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.resume(queue text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.ask_to_drain(worker text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE VIEW holdfast.picture AS  SELECT task.id,
    task.name,
    task.lane,
    task.payload,
    task.created_at,
    task.max_retries,
    task.timeout,
    task.retry,
    task.unique_key,
    task.idempotency_key,
    task.lock_key,
    task.tags,
    task.owner,
    task.trace,
    task.parent_id,
        CASE
            WHEN (done.id IS NOT NULL) THEN (done.state)::text
            WHEN (run.id IS NOT NULL) THEN 'running'::text
            WHEN (waiting.id IS NOT NULL) THEN
            CASE
                WHEN waiting.retrying THEN 'retrying'::text
                ELSE 'queued'::text
            END
            WHEN (blocked.id IS NOT NULL) THEN 'blocked'::text
            ELSE 'queued'::text
        END AS state,
        CASE
            WHEN (done.id IS NOT NULL) THEN 'done'::text
            WHEN (run.id IS NOT NULL) THEN 'running'::text
            WHEN (waiting.id IS NOT NULL) THEN 'waiting'::text
            WHEN (blocked.id IS NOT NULL) THEN 'blocked'::text
            WHEN (ready.id IS NOT NULL) THEN 'ready'::text
            ELSE NULL::text
        END AS place,
    COALESCE(extra.rank, task.rank) AS rank,
    COALESCE(extra.run_at, task.run_at) AS run_at,
        CASE
            WHEN (NOT COALESCE(extra.has_no_expiry, false)) THEN task.expires_at
            ELSE NULL::bigint
        END AS expires_at,
    COALESCE(done.attempt, run.attempt, waiting.attempt, blocked.attempt, ready.attempt, 0) AS attempt,
    COALESCE(extra.charged, 0) AS charged,
    COALESCE(extra.crash_count, 0) AS crash_count,
    COALESCE(extra.cause, 'submitted'::text) AS cause,
    COALESCE(done.started_at, run.started_at, extra.started_at) AS started_at,
    done.finished_at,
    ( SELECT worker.id
           FROM holdfast.worker
          WHERE (worker.number = COALESCE(done.worker, run.worker, extra.worker))) AS worker_id,
        CASE
            WHEN (run.id IS NOT NULL) THEN run.fence
            ELSE COALESCE(done.fence, extra.fence)
        END AS fence,
        CASE
            WHEN (done.id IS NOT NULL) THEN done.result
            ELSE extra.result
        END AS result,
        CASE
            WHEN (done.id IS NOT NULL) THEN done.error
            ELSE extra.error
        END AS error,
        CASE
            WHEN (done.id IS NOT NULL) THEN done.reason
            ELSE extra.reason
        END AS reason,
    done.ended,
    COALESCE(done.charged, false) AS ended_charged,
    extra.progress,
    COALESCE(extra.cost_units, (0)::double precision) AS cost_units,
    COALESCE(extra.tokens_in, (0)::bigint) AS tokens_in,
    COALESCE(extra.tokens_out, (0)::bigint) AS tokens_out,
    COALESCE(extra.cancel_requested, false) AS cancel_requested,
    task.callback
   FROM ((((((holdfast.task
     LEFT JOIN LATERAL ( SELECT d.id,
            d.finished_at,
            d.started_at,
            d.state,
            d.attempt,
            d.worker,
            d.flags,
            d.charged,
            d.fence,
            d.ended,
            d.reason,
            d.error,
            d.result
           FROM holdfast.done d
          WHERE (d.id = task.id)
         LIMIT 1) done ON (true))
     LEFT JOIN LATERAL ( SELECT r.id,
            r.started_at,
            r.lane,
            r.attempt,
            r.worker,
            r.flags,
            r.fence
           FROM holdfast.run r
          WHERE (r.id = task.id)
         LIMIT 1) run ON (true))
     LEFT JOIN LATERAL ( SELECT e.id,
            e.rank,
            e.run_at,
            e.has_no_expiry,
            e.charged,
            e.crash_count,
            e.cause,
            e.started_at,
            e.worker,
            e.fence,
            e.error,
            e.reason,
            e.result,
            e.progress,
            e.cost_units,
            e.tokens_in,
            e.tokens_out,
            e.cancel_requested
           FROM holdfast.extra e
          WHERE (e.id = task.id)
         LIMIT 1) extra ON (true))
     LEFT JOIN LATERAL ( SELECT w.id,
            w.rank,
            w.due_at,
            w.lane,
            w.attempt,
            w.flags,
            w.retrying,
            w.expires_at
           FROM holdfast.waiting w
          WHERE (w.id = task.id)
         LIMIT 1) waiting ON (true))
     LEFT JOIN LATERAL ( SELECT b.lock_key,
            b.rank,
            b.id,
            b.lane,
            b.attempt,
            b.flags,
            b.expires_at
           FROM holdfast.blocked b
          WHERE ((b.lock_key = task.lock_key) AND (b.rank = COALESCE(extra.rank, task.rank)) AND (b.id = task.id))
         LIMIT 1) blocked ON (true))
     LEFT JOIN LATERAL ( SELECT r.id,
            r.rank,
            r.lane,
            r.attempt,
            r.flags,
            r.late,
            r.expires_at
           FROM holdfast.ready r
          WHERE ((r.lane = task.lane) AND (r.late = ANY (ARRAY[false, true])) AND (r.rank = COALESCE(extra.rank, task.rank)) AND (r.id = task.id))
         LIMIT 1) ready ON (true));
CREATE FUNCTION holdfast.pictures(ids text[]) RETURNS SETOF holdfast.picture LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE VIEW holdfast.tasks AS  SELECT p.id,
    (p.t).name AS name,
    lane.queue,
    lane.priority,
    p.state,
    p.attempt,
    COALESCE((p.e).charged, 0) AS charged,
    NULLIF((p.t).max_retries, 2147483647) AS max_retries,
    COALESCE((p.e).crash_count, 0) AS crash_count,
    holdfast.as_time((p.t).created_at) AS created_at,
    holdfast.as_time(COALESCE((p.e).run_at, (p.t).run_at)) AS run_at,
    holdfast.as_time(COALESCE(p.started_at, (p.e).started_at)) AS started_at,
    holdfast.as_time(p.finished_at) AS finished_at,
        CASE
            WHEN (NOT COALESCE((p.e).has_no_expiry, false)) THEN holdfast.as_time((p.t).expires_at)
            ELSE NULL::timestamp with time zone
        END AS expires_at,
    ( SELECT worker.id
           FROM holdfast.worker
          WHERE (worker.number = COALESCE(p.worker, (p.e).worker))) AS worker_id,
    p.reason,
    ((p.error)::json ->> 0) AS error_type,
    ((p.error)::json ->> 1) AS error_message,
    holdfast.as_text((p.t).payload) AS payload,
    holdfast.as_text(p.result) AS result,
    holdfast.shown_key((p.t).unique_key) AS unique_key,
    holdfast.shown_key((p.t).idempotency_key) AS idempotency_key,
    (p.t).lock_key AS lock,
    COALESCE(p.fence, (p.e).fence) AS fence,
    lane.requires,
    (p.t).tags AS tags,
    (p.t).owner AS owner,
    (p.t).trace AS trace,
    (p.t).parent_id AS parent_id,
    COALESCE((p.e).cancel_requested, false) AS cancel_requested,
    COALESCE((p.e).rank, (p.t).rank) AS rank,
    (p.t).callback AS callback,
    (p.t).timeout AS timeout,
    ((p.error)::json ->> 2) AS traceback,
        CASE lane.priority
            WHEN 'critical'::text THEN 9
            WHEN 'high'::text THEN 7
            WHEN 'normal'::text THEN 4
            ELSE 1
        END AS priority_number,
    COALESCE(substr((p.t).trace, 4, 32), replace((p.id)::text, '-'::text, ''::text)) AS trace_id
   FROM (( SELECT t.id,
            t.*::holdfast.task AS t,
            e.*::holdfast.extra AS e,
            d.state,
            d.attempt,
            d.started_at,
            d.finished_at,
            d.worker,
            d.fence,
            d.result,
            d.error,
            d.reason
           FROM ((holdfast.done d
             JOIN holdfast.task t ON ((t.id = d.id)))
             LEFT JOIN holdfast.extra e ON ((e.id = t.id)))
        UNION ALL
         SELECT t.id,
            t.*::holdfast.task AS t,
            e.*::holdfast.extra AS e,
            'running'::holdfast.state,
            r.attempt,
            r.started_at,
            NULL::bigint,
            r.worker,
            r.fence,
            e.result,
            e.error,
            e.reason
           FROM ((holdfast.run r
             JOIN holdfast.task t ON ((t.id = r.id)))
             LEFT JOIN holdfast.extra e ON ((e.id = t.id)))
        UNION ALL
         SELECT t.id,
            t.*::holdfast.task AS t,
            e.*::holdfast.extra AS e,
                CASE
                    WHEN w.retrying THEN 'retrying'::holdfast.state
                    ELSE 'queued'::holdfast.state
                END AS "case",
            w.attempt,
            NULL::bigint,
            NULL::bigint,
            NULL::integer,
            NULL::bigint,
            e.result,
            e.error,
            e.reason
           FROM ((holdfast.waiting w
             JOIN holdfast.task t ON ((t.id = w.id)))
             LEFT JOIN holdfast.extra e ON ((e.id = t.id)))
        UNION ALL
         SELECT t.id,
            t.*::holdfast.task AS t,
            e.*::holdfast.extra AS e,
            'blocked'::holdfast.state,
            b.attempt,
            NULL::bigint,
            NULL::bigint,
            NULL::integer,
            NULL::bigint,
            e.result,
            e.error,
            e.reason
           FROM ((holdfast.task t
             LEFT JOIN holdfast.extra e ON ((e.id = t.id)))
             JOIN holdfast.blocked b ON (((b.lock_key = t.lock_key) AND (b.rank = COALESCE(e.rank, t.rank)) AND (b.id = t.id))))
        UNION ALL
         SELECT t.id,
            t.*::holdfast.task AS t,
            e.*::holdfast.extra AS e,
            'queued'::holdfast.state,
            r.attempt,
            NULL::bigint,
            NULL::bigint,
            NULL::integer,
            NULL::bigint,
            e.result,
            e.error,
            e.reason
           FROM ((holdfast.task t
             LEFT JOIN holdfast.extra e ON ((e.id = t.id)))
             JOIN holdfast.ready r ON (((r.lane = t.lane) AND (r.late = ANY (ARRAY[false, true])) AND (r.rank = COALESCE(e.rank, t.rank)) AND (r.id = t.id))))) p(id, t, e, state, attempt, started_at, finished_at, worker, fence, result, error, reason)
     JOIN holdfast.lane ON ((lane.id = (p.t).lane)));
CREATE FUNCTION holdfast.add_partitions(days integer DEFAULT 3) RETURNS integer LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.missing_partitions(days integer DEFAULT 1) RETURNS integer LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.drop_partition(retention bigint, dead_letter_retention bigint, now bigint DEFAULT NULL::bigint) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.forget_between(first uuid, past uuid, but uuid[]) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.numbers(now bigint DEFAULT NULL::bigint) RETURNS json LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.ahead(queue text, rank bigint, id uuid, cap integer) RETURNS bigint LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.add_token(token text, name text, scopes text[], digest bytea, expires_in bigint, document text, now bigint DEFAULT NULL::bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.rewrite_token(token text, document text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.revoke_token(token text, now bigint DEFAULT NULL::bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.owe_callbacks(ids uuid[], at bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.due_callbacks(max integer, lease bigint, now bigint DEFAULT NULL::bigint) RETURNS TABLE(id text, url text, tries integer, ended_at bigint) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.callback_done(task text, tries integer, ended_at bigint, retry_in bigint, error text, now bigint DEFAULT NULL::bigint) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.add_within(tasks json, idempotency_window double precision DEFAULT 86400, now bigint DEFAULT NULL::bigint) RETURNS TABLE("position" integer, task_id text, outcome text, state text) LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.holds_lease(task text, attempt integer, worker text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.complete_within(task text, attempt integer, worker text, charged integer, crash_count integer, result bytea, progress text, units double precision, tokens_in bigint, tokens_out bigint, logs text, now bigint DEFAULT NULL::bigint) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE FUNCTION holdfast.was_completed(task text, attempt integer, worker text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'old'; END$$;
CREATE TABLE holdfast.task_20260301 PARTITION OF holdfast.task FOR VALUES FROM ('019ca6b1-dc00-0000-0000-000000000000') TO ('019cabd8-3800-0000-0000-000000000000');
CREATE TABLE holdfast.done_20260301 PARTITION OF holdfast.done FOR VALUES FROM ('019ca6b1-dc00-0000-0000-000000000000') TO ('019cabd8-3800-0000-0000-000000000000');
INSERT INTO holdfast.attempt VALUES ('019ca945-14be-7000-8000-000000000002', 1, 'submitted', 1, 1772366403000000, 1772366403500000, 'error', true, '["ValueError", "no such row", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-5726-7000-8000-00000000000b', 1, 'submitted', 3, 1772366420000000, 1772366420000000, 'worker_lost', false, '["WorkerLost", "its worker fell silent", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-850c-7000-8000-000000000013', 1, 'submitted', 6, 1772366431750000, 1772366431750000, 'worker_lost', false, '["WorkerLost", "its worker fell silent", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-8ae8-7000-8000-000000000014', 1, 'submitted', 1, 1772366433250000, 1772366433750000, 'error', true, '["ValueError", "no such row", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-91be-7000-8000-000000000015', 1, 'submitted', 1, 1772366435000000, 1772366435500000, 'timeout', true, '["AttemptTimeout", "ran longer than 5 s", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-9894-7000-8000-000000000016', 1, 'submitted', 1, 1772366436750000, 1772366437250000, 'released', false, NULL);
INSERT INTO holdfast.attempt VALUES ('019ca945-9f6a-7000-8000-000000000017', 1, 'submitted', 1, 1772366438500000, 1772366439000000, 'released', false, '["UnfitArguments", "too many", "Traceback \u2026", true]');
INSERT INTO holdfast.attempt VALUES ('019ca945-a640-7000-8000-000000000018', 1, 'submitted', 1, 1772366440250000, 1772366440750000, 'error', true, '["ValueError", "no such row", "Traceback \u2026", true]');
INSERT INTO holdfast.blocked VALUES ('a', 1772366445750000, '019ca945-bcb6-7000-8000-00000000001d', 4, 0, 1, NULL);
INSERT INTO holdfast.blocked VALUES ('a', 1772364646750000, '019ca945-c09e-7000-8000-00000000001e', 5, 0, 1, NULL);
INSERT INTO holdfast.blocked VALUES ('a', 1772365847750000, '019ca945-c486-7000-8000-00000000001f', 6, 0, 1, NULL);
INSERT INTO holdfast.blocked VALUES ('b', 1772365849750000, '019ca945-cc56-7000-8000-000000000021', 2, 0, 3, NULL);
INSERT INTO holdfast.blocked VALUES ('b', 1772365850750000, '019ca945-d03e-7000-8000-000000000022', 2, 0, 9, 1772368250750000);
INSERT INTO holdfast.blocked VALUES ('c', 1772365851750000, '019ca945-d426-7000-8000-000000000023', 2, 0, 17, NULL);
INSERT INTO holdfast.blocked VALUES ('paused', 1772365857750000, '019ca945-eb96-7000-8000-000000000029', 2, 0, 1, NULL);
INSERT INTO holdfast.callback VALUES ('019ca945-63d8-7000-8000-00000000000d', 1772366423750000, 1772367023750000, 1);
INSERT INTO holdfast.callback VALUES ('019ca945-6aae-7000-8000-00000000000e', 1772366425500000, 1772366425500000, 0);
INSERT INTO holdfast.done VALUES ('019ca945-0de8-7000-8000-000000000001', 1772366401750000, 1772366401250000, 'completed', 1, 1, 2, NULL, NULL, 'completed', NULL, NULL, '\x7b2273756d223a20377d');
INSERT INTO holdfast.done VALUES ('019ca945-14be-7000-8000-000000000002', 1772366404750000, 1772366404750000, 'completed', 2, 1, 5, false, 2, 'completed', NULL, NULL, '\x5b315d');
INSERT INTO holdfast.done VALUES ('019ca945-2076-7000-8000-000000000003', 1772366406500000, 1772366406000000, 'failed', 1, 1, 4, true, NULL, 'error', 'not_retriable', '["ValueError", "no such row", "Traceback \u2026", false]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-274c-7000-8000-000000000004', 1772366408250000, 1772366407750000, 'dead_letter', 1, 1, 4, true, NULL, 'error', 'retries_exhausted', '["ValueError", "no such row", "Traceback \u2026", true]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-2e22-7000-8000-000000000005', 1772366410000000, 1772366409500000, 'dead_letter', 1, 1, 4, true, NULL, 'timeout', 'timeout', '["AttemptTimeout", "ran longer than 5 s", "Traceback \u2026", true]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-34f8-7000-8000-000000000006', 1772366411750000, 1772366411250000, 'dead_letter', 1, 1, 4, false, NULL, 'worker_lost', 'poison', '["WorkerLost", "its worker fell silent", "Traceback \u2026", true]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-3bce-7000-8000-000000000007', 1772366413500000, 1772366413000000, 'dead_letter', 1, 1, 0, false, NULL, 'released', 'unfit_arguments', '["UnfitArguments", "too many", "Traceback \u2026", true]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-42a4-7000-8000-000000000008', 1772366414500000, NULL, 'cancelled', 0, NULL, 2, NULL, NULL, NULL, 'cancelled', NULL, NULL);
INSERT INTO holdfast.done VALUES ('019ca945-468c-7000-8000-000000000009', 1772366415750000, 1772366415750000, 'cancelled', 1, 1, 4, false, NULL, 'cancelled', 'cancelled', NULL, NULL);
INSERT INTO holdfast.done VALUES ('019ca945-4b6e-7000-8000-00000000000a', 1772366418750000, NULL, 'cancelled', 0, NULL, 8, NULL, NULL, NULL, 'expired', NULL, NULL);
INSERT INTO holdfast.done VALUES ('019ca945-5726-7000-8000-00000000000b', 1772366420250000, 1772366420250000, 'completed', 2, 1, 4, false, NULL, 'completed', NULL, NULL, '\x6e756c6c');
INSERT INTO holdfast.done VALUES ('019ca945-5d02-7000-8000-00000000000c', 1772366422000000, 1772366421500000, 'completed', 1, 1, 16, NULL, NULL, 'completed', NULL, NULL, '\x6e756c6c');
INSERT INTO holdfast.done VALUES ('019ca945-63d8-7000-8000-00000000000d', 1772366423750000, 1772366423250000, 'completed', 1, 1, 16, NULL, NULL, 'completed', NULL, NULL, '\x6e756c6c');
INSERT INTO holdfast.done VALUES ('019ca945-6aae-7000-8000-00000000000e', 1772366425500000, 1772366425000000, 'failed', 1, 1, 20, true, NULL, 'error', 'not_retriable', '["ValueError", "no such row", "Traceback \u2026", false]', NULL);
INSERT INTO holdfast.done VALUES ('019ca945-c86e-7000-8000-000000000020', 1772366448750000, NULL, 'cancelled', 0, NULL, 1, NULL, NULL, NULL, 'cancelled', NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-42a4-7000-8000-000000000008', 1, 1772366414500000, 'cancelled', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-468c-7000-8000-000000000009', 2, 1772366415750000, 'cancel_requested', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-4b6e-7000-8000-00000000000a', 3, 1772366418750000, 'expired', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-5726-7000-8000-00000000000b', 4, 1772366420250000, 'late_result_refused', 1, 'buried', NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-5d02-7000-8000-00000000000c', 5, 1772366422000000, 'callback_delivered', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-7184-7000-8000-00000000000f', 6, 1772366426750000, 'log', 1, 'alive', 'one line');
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-7184-7000-8000-00000000000f', 7, 1772366426750000, 'log', 1, 'alive', 'another');
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-7666-7000-8000-000000000010', 8, 1772366428000000, 'cancel_requested', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-a640-7000-8000-000000000018', 9, 1772366440750000, 'requeued', NULL, NULL, NULL);
INSERT INTO holdfast.event OVERRIDING SYSTEM VALUE VALUES ('019ca945-c86e-7000-8000-000000000020', 10, 1772366448750000, 'cancelled', NULL, NULL, NULL);
INSERT INTO holdfast.expiring VALUES (1772366503750000, '019ca945-b4e6-7000-8000-00000000001b');
INSERT INTO holdfast.expiring VALUES (1772368250750000, '019ca945-d03e-7000-8000-000000000022');
INSERT INTO holdfast.expiring VALUES (1772366457750000, '019ca945-dbf6-7000-8000-000000000025');
INSERT INTO holdfast.extra VALUES ('019ca945-14be-7000-8000-000000000002', NULL, 1772366404500000, false, 1, 0, 'retry', 1772366404750000, 1, 2, NULL, NULL, '\x5b315d', NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-2076-7000-8000-000000000003', NULL, NULL, false, 1, 0, 'submitted', 1772366406000000, 1, NULL, '["ValueError", "no such row", "Traceback \u2026", false]', 'not_retriable', NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-274c-7000-8000-000000000004', NULL, NULL, false, 1, 0, 'submitted', 1772366407750000, 1, NULL, '["ValueError", "no such row", "Traceback \u2026", true]', 'retries_exhausted', NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-2e22-7000-8000-000000000005', NULL, NULL, false, 1, 0, 'submitted', 1772366409500000, 1, NULL, '["AttemptTimeout", "ran longer than 5 s", "Traceback \u2026", true]', 'timeout', NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-34f8-7000-8000-000000000006', NULL, NULL, false, 0, 1, 'submitted', 1772366411250000, 1, NULL, '["WorkerLost", "its worker fell silent", "Traceback \u2026", true]', 'poison', NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-468c-7000-8000-000000000009', NULL, NULL, false, 0, 0, 'submitted', 1772366415750000, 1, NULL, NULL, 'cancelled', NULL, NULL, 0, 0, 0, true);
INSERT INTO holdfast.extra VALUES ('019ca945-5726-7000-8000-00000000000b', NULL, 1772366420000000, false, 0, 1, 'worker_lost', 1772366420250000, 1, NULL, NULL, NULL, '\x6e756c6c', NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-6aae-7000-8000-00000000000e', NULL, NULL, false, 1, 0, 'submitted', 1772366425000000, 1, NULL, '["ValueError", "no such row", "Traceback \u2026", false]', 'not_retriable', NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-7184-7000-8000-00000000000f', NULL, NULL, false, 0, 0, 'submitted', NULL, NULL, NULL, NULL, NULL, NULL, '[1, 4, "a quarter"]', 0.5, 10, 20, false);
INSERT INTO holdfast.extra VALUES ('019ca945-7666-7000-8000-000000000010', NULL, NULL, false, 0, 0, 'submitted', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, true);
INSERT INTO holdfast.extra VALUES ('019ca945-850c-7000-8000-000000000013', NULL, 1772366431750000, false, 0, 1, 'worker_lost', 1772366431750000, 6, NULL, '["WorkerLost", "its worker fell silent", "Traceback \u2026", true]', NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-8ae8-7000-8000-000000000014', NULL, 1772367033750000, false, 1, 0, 'retry', 1772366433250000, 1, NULL, '["ValueError", "no such row", "Traceback \u2026", true]', NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-91be-7000-8000-000000000015', NULL, 1772366444500000, false, 1, 0, 'timeout', 1772366435000000, 1, 5, '["AttemptTimeout", "ran longer than 5 s", "Traceback \u2026", true]', NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-9894-7000-8000-000000000016', NULL, 1772366737250000, false, 0, 0, 'released', 1772366436750000, 1, 6, NULL, NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-9f6a-7000-8000-000000000017', NULL, 1772366440000000, false, 0, 0, 'released', 1772366438500000, 1, NULL, '["UnfitArguments", "too many", "Traceback \u2026", true]', NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.extra VALUES ('019ca945-a640-7000-8000-000000000018', 1772365840750000, 1772366440750000, true, 0, 0, 'operator', 1772366440250000, 1, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, false);
INSERT INTO holdfast.idempotency VALUES ('order-1', '019ca945-0de8-7000-8000-000000000001', 'f1', 1772452801000000);
INSERT INTO holdfast.idempotency VALUES ('later', '019ca945-ad16-7000-8000-000000000019', NULL, 1772452841750000);
INSERT INTO holdfast.idempotency VALUES ('order-2', '019ca945-d80e-7000-8000-000000000024', 'f2', 1772452852750000);
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (1, 'default', '{}', 'critical');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (2, 'default', '{}', 'normal');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (3, 'default', '{task:demo}', 'normal');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (4, 'default', '{}', 'low');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (5, 'default', '{}', 'high');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (6, 'other', '{gpu}', 'normal');
INSERT INTO holdfast.lane OVERRIDING SYSTEM VALUE VALUES (7, 'mail', '{}', 'normal');
INSERT INTO holdfast.lock VALUES ('a', '019ca945-b8ce-7000-8000-00000000001c', 5, 1772364644750000);
INSERT INTO holdfast.lock VALUES ('b', '019ca945-7b48-7000-8000-000000000011', 2, 1772365829000000);
INSERT INTO holdfast.lock VALUES ('c', '019ca945-802a-7000-8000-000000000012', 2, 1772365830250000);
INSERT INTO holdfast.lock VALUES ('paused', '019ca945-e7ae-7000-8000-000000000028', 7, 1772365856750000);
INSERT INTO holdfast.paused_queue VALUES ('mail');
INSERT INTO holdfast.ready VALUES ('019ca945-9f6a-7000-8000-000000000017', 1772365838250000, 3, 1, 4, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-a640-7000-8000-000000000018', 1772365840750000, 2, 1, 4, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-b8ce-7000-8000-00000000001c', 1772364644750000, 5, 0, 1, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-d80e-7000-8000-000000000024', 1772365852750000, 2, 0, 0, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-dbf6-7000-8000-000000000025', 1772365853750000, 2, 0, 8, false, 1772366457750000);
INSERT INTO holdfast.ready VALUES ('019ca945-dfde-7000-8000-000000000026', 1772365854750000, 2, 0, 2, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-e3c6-7000-8000-000000000027', -1381233544250000, 1, 0, 0, false, NULL);
INSERT INTO holdfast.ready VALUES ('019ca945-e7ae-7000-8000-000000000028', 1772365856750000, 7, 0, 1, false, NULL);
INSERT INTO holdfast.run VALUES ('019ca945-7184-7000-8000-00000000000f', 1772366426750000, 2, 1, 1, 22, NULL);
INSERT INTO holdfast.run VALUES ('019ca945-7666-7000-8000-000000000010', 1772366428000000, 2, 1, 1, 4, NULL);
INSERT INTO holdfast.run VALUES ('019ca945-7b48-7000-8000-000000000011', 1772366429250000, 2, 1, 1, 1, 3);
INSERT INTO holdfast.run VALUES ('019ca945-802a-7000-8000-000000000012', 1772366430500000, 2, 1, 2, 1, 4);
INSERT INTO holdfast.run VALUES ('019ca945-850c-7000-8000-000000000013', 1772366432000000, 2, 2, 7, 4, NULL);
INSERT INTO holdfast.stop VALUES (1, '019ca945-7666-7000-8000-000000000010');
INSERT INTO holdfast.tally VALUES ('completed', 1772366420, 1, 2);
INSERT INTO holdfast.tally VALUES ('waiting', 2, 5, NULL);
INSERT INTO holdfast.tally VALUES ('waiting', 4, 1, NULL);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366440, -1, NULL);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366440, 1, 2);
INSERT INTO holdfast.tally VALUES ('completed', 1772366404, 1, 2);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366413, 1, 2);
INSERT INTO holdfast.tally VALUES ('cancelled', 1772366448, 1, NULL);
INSERT INTO holdfast.tally VALUES ('ready', 5, 1, NULL);
INSERT INTO holdfast.tally VALUES ('completed', 1772366422, 1, 2);
INSERT INTO holdfast.tally VALUES ('blocked', 4, 1, NULL);
INSERT INTO holdfast.tally VALUES ('cancelled', 1772366415, 1, NULL);
INSERT INTO holdfast.tally VALUES ('failed', 1772366425, 1, 2);
INSERT INTO holdfast.tally VALUES ('cancelled', 1772366418, 1, NULL);
INSERT INTO holdfast.tally VALUES ('refused', 0, 1, NULL);
INSERT INTO holdfast.tally VALUES ('completed', 1772366423, 1, 2);
INSERT INTO holdfast.tally VALUES ('ready', 7, 1, NULL);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366408, 1, 2);
INSERT INTO holdfast.tally VALUES ('cancelled', 1772366414, 1, NULL);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366410, 1, 2);
INSERT INTO holdfast.tally VALUES ('ready', 1, 1, NULL);
INSERT INTO holdfast.tally VALUES ('blocked', 6, 1, NULL);
INSERT INTO holdfast.tally VALUES ('dead_letter', 1772366411, 1, 2);
INSERT INTO holdfast.tally VALUES ('completed', 1772366401, 1, 1);
INSERT INTO holdfast.tally VALUES ('blocked', 2, 4, NULL);
INSERT INTO holdfast.tally VALUES ('ready', 3, 1, NULL);
INSERT INTO holdfast.tally VALUES ('failed', 1772366406, 1, 2);
INSERT INTO holdfast.tally VALUES ('blocked', 5, 1, NULL);
INSERT INTO holdfast.tally VALUES ('retrying', 0, 2, NULL);
INSERT INTO holdfast.tally VALUES ('running', 2, 5, NULL);
INSERT INTO holdfast.tally VALUES ('ready', 2, 4, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-0de8-7000-8000-000000000001', -1381233599000000, 1772366401000000, 1772366401000000, 1, 3, 2.5, NULL, NULL, 'demo', '\x7b226c6162656c223a2022636f6d706c65746564227d', 'exponential(5s, 2)', 'once', 'order-1', NULL, 'anna', '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01', '{a,b}', NULL);
INSERT INTO holdfast.task VALUES ('019ca945-14be-7000-8000-000000000002', 1772365802750000, 1772366402750000, 1772366402750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022636f6d706c65746564206c61746572227d', NULL, NULL, NULL, 'old', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-2076-7000-8000-000000000003', 1772365805750000, 1772366405750000, 1772366405750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20226661696c6564227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-274c-7000-8000-000000000004', 1772365807500000, 1772366407500000, 1772366407500000, 2, 0, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202264656164206c6574746572227d', NULL, NULL, NULL, NULL, NULL, NULL, '{dead}', NULL);
INSERT INTO holdfast.task VALUES ('019ca945-2e22-7000-8000-000000000005', 1772365809250000, 1772366409250000, 1772366409250000, 2, 0, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202274696d6564206f7574227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-34f8-7000-8000-000000000006', 1772365811000000, 1772366411000000, 1772366411000000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022706f69736f6e227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-3bce-7000-8000-000000000007', 1772365812750000, 1772366412750000, 1772366412750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022756e666974227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-42a4-7000-8000-000000000008', 1772365814500000, 1772366414500000, 1772366414500000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202263616e63656c6c6564227d', NULL, 'cancelled', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-468c-7000-8000-000000000009', 1772365815500000, 1772366415500000, 1772366415500000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202273746f70706564227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-4b6e-7000-8000-00000000000a', 1772365816750000, 1772366416750000, 1772366416750000, 2, 3, NULL, 1772366417750000, NULL, 'demo', '\x7b226c6162656c223a202265787069726564227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-5726-7000-8000-00000000000b', 1772365819750000, 1772366419750000, 1772366419750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20226c617465227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-5d02-7000-8000-00000000000c', 1772365821250000, 1772366421250000, 1772366421250000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022746f6c64227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-63d8-7000-8000-00000000000d', 1772365823000000, 1772366423000000, 1772366423000000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20226e6f7420746f6c6420796574227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-6aae-7000-8000-00000000000e', 1772365824750000, 1772366424750000, 1772366424750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022746f20626520746f6c64227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-7184-7000-8000-00000000000f', 1772365826500000, 1772366426500000, 1772366426500000, 2, 3, 9, NULL, NULL, 'demo', '\x7b226c6162656c223a202272756e6e696e67227d', NULL, 'running', NULL, NULL, NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-7666-7000-8000-000000000010', 1772365827750000, 1772366427750000, 1772366427750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202272756e6e696e672c20746f2062652073746f70706564227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-7b48-7000-8000-000000000011', 1772365829000000, 1772366429000000, 1772366429000000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022686f6c64732062227d', NULL, NULL, NULL, 'b', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-802a-7000-8000-000000000012', 1772365830250000, 1772366430250000, 1772366430250000, 2, 1, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20226c6f7374227d', NULL, NULL, NULL, 'c', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-850c-7000-8000-000000000013', 1772365831500000, 1772366431500000, 1772366431500000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202263726173686564207477696365227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-8ae8-7000-8000-000000000014', 1772365833000000, 1772366433000000, 1772366433000000, 2, 5, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227265747279696e67227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-91be-7000-8000-000000000015', 1772365834750000, 1772366434750000, 1772366434750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227265747279696e6720736f6f6e227d', NULL, NULL, NULL, 'soon', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-9894-7000-8000-000000000016', 1772365836500000, 1772366436500000, 1772366436500000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022736e6f6f7a696e67227d', NULL, NULL, NULL, 'snooze', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-9f6a-7000-8000-000000000017', 1772365838250000, 1772366438250000, 1772366438250000, 3, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20226e65656473206f7468657273227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-a640-7000-8000-000000000018', 1772365840000000, 1772366440000000, 1772366440000000, 2, 0, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227265717565756564227d', NULL, NULL, NULL, NULL, NULL, NULL, '{dead}', NULL);
INSERT INTO holdfast.task VALUES ('019ca945-ad16-7000-8000-000000000019', 1772369441750000, 1772366441750000, 1772370041750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202264656c61796564227d', NULL, NULL, 'later', NULL, NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-b0fe-7000-8000-00000000001a', 1772366447750000, 1772366442750000, 1772366447750000, 4, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202264656c617965642c206475652073696e6365227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-b4e6-7000-8000-00000000001b', 1772366443750000, 1772366443750000, 1772367043750000, 2, 3, NULL, 1772366503750000, NULL, 'demo', '\x7b226c6162656c223a202264656c617965642c206578706972696e67227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-b8ce-7000-8000-00000000001c', 1772364644750000, 1772366444750000, 1772366444750000, 5, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022686f6c64732061227d', NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-bcb6-7000-8000-00000000001d', 1772366445750000, 1772366445750000, 1772366445750000, 4, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022746869726420696e2061227d', NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-c09e-7000-8000-00000000001e', 1772364646750000, 1772366446750000, 1772366446750000, 5, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022666972737420696e2061227d', NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-c486-7000-8000-00000000001f', 1772365847750000, 1772366447750000, 1772366447750000, 6, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227365636f6e6420696e2061227d', NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-c86e-7000-8000-000000000020', 1772365848750000, 1772366448750000, 1772366448750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a202263616e63656c6c656420696e2061227d', NULL, NULL, NULL, 'a', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-cc56-7000-8000-000000000021', 1772365849750000, 1772366449750000, 1772366449750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022666972737420696e2062227d', NULL, 'b', NULL, 'b', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-d03e-7000-8000-000000000022', 1772365850750000, 1772366450750000, 1772366450750000, 2, 3, NULL, 1772368250750000, NULL, 'demo', '\x7b226c6162656c223a20226578706972696e6720696e2062227d', NULL, NULL, NULL, 'b', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-d426-7000-8000-000000000023', 1772365851750000, 1772366451750000, 1772366451750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022666972737420696e2063227d', NULL, NULL, NULL, 'c', NULL, NULL, NULL, 'https://example.com/told');
INSERT INTO holdfast.task VALUES ('019ca945-d80e-7000-8000-000000000024', 1772365852750000, 1772366452750000, 1772366452750000, 2, 3, NULL, NULL, '019ca945-7184-7000-8000-00000000000f', 'demo', '\x7b226c6162656c223a2022717565756564227d', NULL, NULL, 'order-2', NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-dbf6-7000-8000-000000000025', 1772365853750000, 1772366453750000, 1772366453750000, 2, 3, NULL, 1772366457750000, NULL, 'demo', '\x7b226c6162656c223a20227175657565642c20657870697265642073696e6365227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-dfde-7000-8000-000000000026', 1772365854750000, 1772366454750000, 1772366454750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227175657565642c206f6e6365227d', NULL, 'once', NULL, NULL, 'anna', NULL, '{a}', NULL);
INSERT INTO holdfast.task VALUES ('019ca945-e3c6-7000-8000-000000000027', -1381233544250000, 1772366455750000, 1772366455750000, 1, 2147483647, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227175657565642c20666f722065766572227d', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-e7ae-7000-8000-000000000028', 1772365856750000, 1772366456750000, 1772366456750000, 7, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a2022706175736564227d', NULL, NULL, NULL, 'paused', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.task VALUES ('019ca945-eb96-7000-8000-000000000029', 1772365857750000, 1772366457750000, 1772366457750000, 2, 3, NULL, NULL, NULL, 'demo', '\x7b226c6162656c223a20227061757365642c20626c6f636b6564227d', NULL, NULL, NULL, 'paused', NULL, NULL, NULL, NULL);
INSERT INTO holdfast.token OVERRIDING SYSTEM VALUE VALUES (1, '0123456789abcdef', 'ci', '{read,submit}', '\x0f007385b6f9d4b7eeb2748605afe1a984a0a3bfa3f014d09e2a784ce9e5cd1a', 1772366467750001, 1772452867750001, NULL, '{"owner": "anna", "queues": ["default"], "rate": [100, 60], "created_by": "cli", "last_used_at": "2026-03-01T12:00:01+00:00"}');
INSERT INTO holdfast.token OVERRIDING SYSTEM VALUE VALUES (3, '2123456789abcdef', 'short', '{worker}', '\x0f007385b6f9d4b7eeb2748605afe1a984a0a3bfa3f014d09e2a784ce9e5cd1a', 1772366467750003, 1772366469250003, NULL, '{}');
INSERT INTO holdfast.token OVERRIDING SYSTEM VALUE VALUES (2, '1123456789abcdef', 'old ✓', '{admin}', '\x0f007385b6f9d4b7eeb2748605afe1a984a0a3bfa3f014d09e2a784ce9e5cd1a', 1772366467750002, NULL, 1772366467750003, '{}');
INSERT INTO holdfast.unique_key VALUES ('demo', 'running', '019ca945-7184-7000-8000-00000000000f');
INSERT INTO holdfast.unique_key VALUES ('demo', 'b', '019ca945-cc56-7000-8000-000000000021');
INSERT INTO holdfast.unique_key VALUES ('demo', 'once', '019ca945-dfde-7000-8000-000000000026');
INSERT INTO holdfast.waiting VALUES ('019ca945-8ae8-7000-8000-000000000014', 1772365833000000, 1772367033750000, 2, 1, 4, true, NULL);
INSERT INTO holdfast.waiting VALUES ('019ca945-91be-7000-8000-000000000015', 1772365834750000, 1772366444500000, 2, 1, 5, true, NULL);
INSERT INTO holdfast.waiting VALUES ('019ca945-9894-7000-8000-000000000016', 1772365836500000, 1772366737250000, 2, 1, 5, false, NULL);
INSERT INTO holdfast.waiting VALUES ('019ca945-ad16-7000-8000-000000000019', 1772369441750000, 1772370041750000, 2, 0, 16, false, NULL);
INSERT INTO holdfast.waiting VALUES ('019ca945-b0fe-7000-8000-00000000001a', 1772366447750000, 1772366447750000, 4, 0, 0, false, NULL);
INSERT INTO holdfast.waiting VALUES ('019ca945-b4e6-7000-8000-00000000001b', 1772366443750000, 1772367043750000, 2, 0, 8, false, 1772366503750000);
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (2, 'silent', 'localhost', 4711, '0', '{default,mail}', '{}', 10, 0, 'active', 0, 1772366400000000, 1772366400000000, false, false, 'python', false, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (4, 'gone', 'localhost', 4711, '0', NULL, '{}', 10, 0, 'stopped', 0, 1772366400000000, 1772366400000000, false, false, 'python', false, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (5, 'far', 'localhost', 4711, '0', NULL, '{http}', 10, 0, 'active', 0, 1772366400000000, 1772366400000000, false, false, 'http', true, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (1, 'alive', 'localhost', 4711, '0', NULL, '{gpu}', 4, 3, 'active', 1, 1772366400000000, 1772366400000000, false, false, 'python', false, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (3, 'buried', 'localhost', 4711, '0', NULL, '{}', 10, 0, 'dead', 0, 1772366400000000, 1772366400000000, false, false, 'python', false, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (6, 'buried-2', 'localhost', 4711, '0', NULL, '{}', 10, 0, 'dead', 0, 1772366430500000, 1772366430500000, false, false, 'python', false, '');
INSERT INTO holdfast.worker OVERRIDING SYSTEM VALUE VALUES (7, 'buried-3', 'localhost', 4711, '0', NULL, '{}', 10, 0, 'dead', 0, 1772366431750000, 1772366431750000, false, false, 'python', false, '');
SELECT pg_catalog.setval('holdfast.event_seq_seq', 10, true);
SELECT pg_catalog.setval('holdfast.fence', 6, true);
SELECT pg_catalog.setval('holdfast.lane_id_seq', 7, true);
SELECT pg_catalog.setval('holdfast.token_number_seq', 3, true);
SELECT pg_catalog.setval('holdfast.worker_number_seq', 7, true);

-- What postgres_store.py keeps in a database, in the schema "everclick", as steps from one version to the next.
-- A step that was released must not be changed: add the next one. During a deploy processes of two versions run beside
-- each other, so what an older one gives a function, and gets from it, must stay as it is.

-- Version 1

CREATE SEQUENCE everclick.turn;
CREATE TABLE everclick.process(bot bigint, id text, until timestamptz NOT NULL, PRIMARY KEY(bot, id));
CREATE TABLE everclick.inbox(id bigint GENERATED ALWAYS AS IDENTITY, bot bigint, key text COLLATE "C",
    body bytea NOT NULL, accepted_at float8 NOT NULL, runs bigint NOT NULL, done_at float8, owner text NOT NULL,
    answer bytea, PRIMARY KEY(bot, key));
CREATE INDEX inbox_waiting ON everclick.inbox(bot, owner, id) WHERE done_at IS NULL;
CREATE INDEX inbox_done ON everclick.inbox(bot, done_at) WHERE done_at IS NOT NULL;
CREATE TABLE everclick.record(bot bigint, name text COLLATE "C", key text COLLATE "C", version bigint NOT NULL,
    model bigint NOT NULL, data bytea NOT NULL, shown bigint NOT NULL, channel bigint, message bigint,
    ephemeral boolean, guild bigint, expires_at float8, PRIMARY KEY(bot, name, key));
CREATE INDEX record_behind ON everclick.record(bot) WHERE shown < version AND message IS NOT NULL;
CREATE INDEX record_expiry ON everclick.record(bot, name, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX record_message ON everclick.record(bot, message) WHERE message IS NOT NULL;
CREATE INDEX record_channel ON everclick.record(bot, channel) WHERE channel IS NOT NULL;
CREATE INDEX record_guild ON everclick.record(bot, guild) WHERE guild IS NOT NULL;
CREATE TABLE everclick.failed(id bigint GENERATED ALWAYS AS IDENTITY, bot bigint, key text COLLATE "C",
    body bytea NOT NULL, failed_at float8 NOT NULL, runs bigint NOT NULL, type text NOT NULL, text text NOT NULL,
    place text NOT NULL, applied boolean NOT NULL, PRIMARY KEY(bot, key));
CREATE INDEX failed_id ON everclick.failed(bot, id);
CREATE TABLE everclick.timer(bot bigint, key text COLLATE "C", due_at float8 NOT NULL, body bytea NOT NULL,
    PRIMARY KEY(bot, key));
CREATE INDEX timer_due ON everclick.timer(bot, due_at);
CREATE TABLE everclick.cursor(bot bigint, shard bigint, fingerprint text NOT NULL, session text NOT NULL,
    seq bigint NOT NULL, resume_url text NOT NULL, me bytea NOT NULL, started_at float8 NOT NULL,
    saved_at float8 NOT NULL, PRIMARY KEY(bot, shard));
CREATE TABLE everclick.gap(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, bot bigint NOT NULL,
    shard bigint NOT NULL, since float8 NOT NULL, until float8 NOT NULL, why text NOT NULL);
CREATE TABLE everclick.pin(bot bigint, name text COLLATE "C", key text NOT NULL, pinned_at float8 NOT NULL,
    PRIMARY KEY(bot, name));
CREATE TABLE everclick.lease(bot bigint, name text COLLATE "C", owner text NOT NULL, ask bigint NOT NULL,
    token bigint NOT NULL, until timestamptz NOT NULL, ends timestamptz NOT NULL, PRIMARY KEY(bot, name));
CREATE TABLE everclick.waiter(bot bigint, name text COLLATE "C", turn bigint DEFAULT nextval('everclick.turn'),
    owner text NOT NULL, ask bigint NOT NULL, PRIMARY KEY(bot, name, turn), UNIQUE(bot, owner, ask));

CREATE TYPE everclick.position AS (shard bigint, fingerprint text, session text, seq bigint, resume_url text,
    me bytea);
CREATE TYPE everclick.saved AS (name text, key text, version bigint, model bigint, data bytea, shown bigint,
    channel bigint, message bigint, ephemeral boolean, guild bigint, expires_at float8);
CREATE TYPE everclick.timed AS (key text, due_at float8, body bytea);
CREATE TYPE everclick.fence AS (name text, token bigint);
CREATE TYPE everclick.step AS (kind text, at float8, key text, body bytea, runs bigint, place everclick.position,
    records everclick.saved[], timers everclick.timed[], fences everclick.fence[]);

CREATE FUNCTION everclick.accept(b bigint, me text, s everclick.step) RETURNS int LANGUAGE plpgsql AS $$
DECLARE p everclick.position := s.place; new int := 0;
BEGIN
    IF p.shard IS NOT NULL THEN
        INSERT INTO everclick.cursor AS c SELECT b, (p).*, s.at, s.at ON CONFLICT(bot, shard) DO UPDATE SET
            saved_at=s.at, fingerprint=p.fingerprint, session=p.session, resume_url=p.resume_url, me=p.me,
            seq=CASE WHEN c.session=p.session THEN greatest(c.seq, p.seq) ELSE p.seq END,
            started_at=CASE WHEN c.session=p.session THEN c.started_at ELSE s.at END;
    END IF;
    IF s.key IS NOT NULL THEN
        INSERT INTO everclick.inbox(bot, key, body, accepted_at, runs, owner)
            VALUES(b, s.key, s.body, s.at, s.runs, me) ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS new = ROW_COUNT;
    END IF;
    RETURN new;
END $$;

CREATE FUNCTION everclick.refused(b bigint, me text, s everclick.step) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r everclick.saved; holder text; have bigint; n int := 0;
BEGIN
    SELECT owner INTO holder FROM everclick.inbox WHERE bot=b AND key=s.key FOR UPDATE;
    IF holder <> me THEN RETURN -1; END IF;
    IF EXISTS(SELECT FROM unnest(s.fences) f WHERE NOT EXISTS(SELECT FROM everclick.lease l WHERE l.bot=b
        AND l.name=f.name AND l.token=f.token AND l.owner=me AND l.until > clock_timestamp())) THEN RETURN -2;
    END IF;
    FOREACH r IN ARRAY s.records LOOP
        n := n + 1;
        SELECT version INTO have FROM everclick.record WHERE bot=b AND name=r.name AND key=r.key
            AND (expires_at IS NULL OR expires_at > s.at) FOR UPDATE;
        IF coalesce(have, 0) <> r.version THEN RETURN n; END IF;
    END LOOP;
    RETURN 0;
END $$;

CREATE FUNCTION everclick.put(b bigint, at float8, r everclick.saved) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF r.data = '' THEN
        DELETE FROM everclick.record WHERE bot=b AND name=r.name AND key=r.key;
    ELSIF r.version > 0 THEN
        UPDATE everclick.record SET version=version+1, model=r.model, data=r.data, expires_at=r.expires_at,
            channel=coalesce(r.channel, channel), message=coalesce(r.message, message),
            ephemeral=coalesce(r.ephemeral, ephemeral), guild=coalesce(r.guild, guild)
            WHERE bot=b AND name=r.name AND key=r.key;
    ELSE
        DELETE FROM everclick.record WHERE bot=b AND name=r.name AND key=r.key AND expires_at <= at;
        INSERT INTO everclick.record VALUES(b, r.name, r.key, 1, r.model, r.data, (r.shown >= 0)::int, r.channel,
            r.message, r.ephemeral, r.guild, r.expires_at);
    END IF;
END $$;

CREATE FUNCTION everclick.change(b bigint, me text, s everclick.step) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r everclick.saved; t everclick.timed; refusal int := everclick.refused(b, me, s);
BEGIN
    IF refusal <> 0 THEN RETURN refusal; END IF;
    FOREACH r IN ARRAY s.records LOOP PERFORM everclick.put(b, s.at, r); END LOOP;
    FOREACH t IN ARRAY s.timers LOOP
        IF t.due_at IS NULL THEN DELETE FROM everclick.timer WHERE bot=b AND key=t.key;
        ELSE INSERT INTO everclick.timer VALUES(b, t.key, t.due_at, t.body)
            ON CONFLICT(bot, key) DO UPDATE SET due_at=excluded.due_at, body=excluded.body;
        END IF;
    END LOOP;
    UPDATE everclick.inbox SET done_at=s.at, body='' WHERE bot=b AND key=s.key;
    RETURN 0;
END $$;

CREATE FUNCTION everclick.note(b bigint, r everclick.saved) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    UPDATE everclick.record SET shown=greatest(shown, r.version), channel=coalesce(r.channel, channel),
        message=coalesce(r.message, message), ephemeral=coalesce(r.ephemeral, ephemeral),
        guild=coalesce(r.guild, guild) WHERE bot=b AND name=r.name AND key=r.key;
    RETURN 0;
END $$;

CREATE FUNCTION everclick.apply(b bigint, me text, steps everclick.step[]) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE s everclick.step;
BEGIN  -- what several processes change is locked in one order, so that no two wait for each other
    PERFORM FROM everclick.lease WHERE bot=b AND name IN (SELECT f.name FROM unnest(steps) e, unnest(e.fences) f)
        ORDER BY name FOR SHARE;
    PERFORM FROM everclick.record WHERE bot=b AND (name, key) IN
        (SELECT r.name, r.key FROM unnest(steps) e, unnest(e.records) r) ORDER BY name, key FOR UPDATE;
    FOREACH s IN ARRAY steps LOOP
        IF s.kind = 'accept' THEN RETURN NEXT everclick.accept(b, me, s);
        ELSIF s.kind = 'change' THEN RETURN NEXT everclick.change(b, me, s);
        ELSIF s.kind = 'note' THEN RETURN NEXT everclick.note(b, s.records[1]);
        ELSIF s.kind = 'answer' THEN
            UPDATE everclick.inbox SET answer=s.body WHERE bot=b AND key=s.key;
            RETURN NEXT 0;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION everclick.first(b bigint, n text, OUT owner text, OUT ask bigint, OUT until timestamptz)
    LANGUAGE sql AS $$
    SELECT w.owner, w.ask, p.until FROM everclick.waiter w JOIN everclick.process p ON p.bot=w.bot AND p.id=w.owner
        WHERE w.bot=b AND w.name=n AND p.until > clock_timestamp() ORDER BY w.turn LIMIT 1
$$;

CREATE FUNCTION everclick.take(b bigint, me text, n text, a bigint, lease float8, hold float8,
    OUT token bigint, OUT again float8) LANGUAGE plpgsql AS $$
DECLARE head record; t timestamptz := clock_timestamp(); s interval := '1 second';
BEGIN
    SELECT * INTO head FROM everclick.first(b, n);
    IF head.ask IS NULL OR (head.owner, head.ask) = (me, a) THEN
        INSERT INTO everclick.lease AS l VALUES(b, n, me, a, nextval('everclick.turn'), t + least(lease, hold) * s,
            t + hold * s) ON CONFLICT(bot, name) DO UPDATE SET owner=me, ask=a, token=excluded.token,
            until=excluded.until, ends=excluded.ends WHERE l.until <= clock_timestamp()
            RETURNING l.token INTO token;
        head.until := NULL;
    END IF;
    IF token IS NOT NULL THEN
        DELETE FROM everclick.waiter WHERE bot=b AND owner=me AND ask=a;
    ELSE
        INSERT INTO everclick.waiter(bot, name, owner, ask) VALUES(b, n, me, a) ON CONFLICT DO NOTHING;
        again := extract(epoch FROM greatest(head.until, (SELECT until FROM everclick.lease WHERE bot=b
            AND name=n)) - t);
    END IF;
END $$;

CREATE FUNCTION everclick.leave(b bigint, me text, n text, a bigint, OUT token bigint, OUT again float8)
    LANGUAGE plpgsql AS $$
DECLARE head record;
BEGIN
    DELETE FROM everclick.waiter WHERE bot=b AND owner=me AND (a IS NULL OR ask=a);
    DELETE FROM everclick.lease WHERE bot=b AND name=n AND owner=me AND (a IS NULL OR ask=a);
    SELECT * INTO head FROM everclick.first(b, n);
    IF head.ask IS NOT NULL AND NOT EXISTS(SELECT FROM everclick.lease WHERE bot=b AND name=n
        AND until > clock_timestamp()) THEN PERFORM pg_notify('everclick_' || head.owner, head.ask::text);
    END IF;
END $$;

CREATE FUNCTION everclick.queue(b bigint, me text, lease float8, names text[], asks bigint[], holds float8[])
    RETURNS TABLE(token bigint, again float8) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(h) FROM
        (SELECT DISTINCT hashtextextended(n, b) AS h FROM unnest(names) n ORDER BY h) hashes;
    FOR i IN 1..cardinality(names) LOOP
        IF holds[i] > 0 THEN RETURN QUERY SELECT * FROM everclick.take(b, me, names[i], asks[i], lease, holds[i]);
        ELSE RETURN QUERY SELECT * FROM everclick.leave(b, me, names[i], asks[i]);
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION everclick.height(data bytea, field text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE COST 100 AS $$
DECLARE value jsonb;
BEGIN  -- short, for what is in an index must be; a longer one would keep the record from being written
    value := convert_from(data, 'UTF8')::jsonb -> field;
    RETURN CASE jsonb_typeof(value) WHEN 'string' THEN to_jsonb(left(value #>> '{}', 200))
        WHEN 'number' THEN CASE WHEN pg_column_size(value) < 200 THEN value END WHEN 'boolean' THEN value END;
EXCEPTION WHEN OTHERS THEN RETURN NULL;  -- no JSON
END $$;

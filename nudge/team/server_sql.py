"""What the shared database is asked: the SQL that an administrator reads and runs once, and the statements of a member.

Rights are PostgreSQL's. Every policy asks for `current_user`, and those for writing also that it is the role that
logged in: `SET ROLE`, a variable of the connection, or another member's `SECURITY DEFINER` function cannot lend one.
"""

# ruff: noqa: S608 - only constants are put into the SQL; every value is bound
from __future__ import annotations

from nudge.core import limits
from nudge.team.entry import KINDS

SCHEMA = "nudge_team"
MEMBERS = "nudge_team"
"""The role that all members belong to."""
FORMAT = 1

_KINDS = ", ".join(f"'{kind}'" for kind in KINDS)
_AHEAD_MS = int(limits.TEAM_CLOCK_AHEAD * 1_000)

INIT = f"""\
-- The shared log of Nudge, format {FORMAT}. Read it, then run it once as a role that may create roles and schemas:
--   nudge team init | psql -v ON_ERROR_STOP=1 -d DATABASE
-- Then let people in, and say which role may read and write which repo:
--   GRANT {MEMBERS} TO alice;
--   INSERT INTO {SCHEMA}.repos VALUES ('github.com/acme/app', 'a_role_that_alice_belongs_to');
BEGIN;

DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{MEMBERS}') THEN CREATE ROLE {MEMBERS} NOLOGIN; END IF;
END $$;
CREATE SCHEMA {SCHEMA};
REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC;

-- The database of before a restore and the one after it are two: after a restore, run `nudge team init --restored`.
CREATE TABLE {SCHEMA}.epochs (
    n integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    epoch uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    format integer NOT NULL DEFAULT {FORMAT},
    since timestamptz NOT NULL DEFAULT now()
);
INSERT INTO {SCHEMA}.epochs DEFAULT VALUES;

-- Who may read and write a repo: the members of each role that is named for it.
CREATE TABLE {SCHEMA}.repos (
    project text COLLATE "C" NOT NULL,
    role name NOT NULL,
    PRIMARY KEY (project, role)
);

-- An origin is the store of one machine. Only the role that it belongs to writes under it.
CREATE TABLE {SCHEMA}.origins (
    origin uuid PRIMARY KEY,
    role name NOT NULL DEFAULT current_user,
    since timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX origins_role ON {SCHEMA}.origins (role);

-- The log. `n` has no gaps in a repo and origin, so that a reader which has seen n has seen all before it.
CREATE TABLE {SCHEMA}.ops (
    project text COLLATE "C" NOT NULL CHECK (octet_length(project) BETWEEN 1 AND {limits.MAX_NAMESPACE_BYTES}),
    origin uuid NOT NULL REFERENCES {SCHEMA}.origins,
    n bigint NOT NULL CHECK (n > 0),
    hlc bigint NOT NULL CHECK (hlc > 0),
    kind text COLLATE "C" NOT NULL CHECK (kind IN ({_KINDS})),
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND {limits.TEAM_KEY_BYTES}),
    body text NOT NULL CHECK (octet_length(body) <= {limits.TEAM_BODY_BYTES}),
    epoch integer NOT NULL,
    PRIMARY KEY (project, origin, n)
);

CREATE FUNCTION {SCHEMA}.refuse_gaps() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT project, origin, min(n) AS first, max(n) AS last, count(*) AS many FROM added GROUP BY 1, 2 LOOP
        IF one.last - one.first + 1 <> one.many OR (one.first > 1 AND NOT EXISTS (
            SELECT FROM {SCHEMA}.ops o WHERE o.project = one.project AND o.origin = one.origin AND o.n = one.first - 1
        )) THEN
            RAISE EXCEPTION '{SCHEMA}: a gap in n' USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER no_gaps AFTER INSERT ON {SCHEMA}.ops
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse_gaps();

ALTER TABLE {SCHEMA}.epochs ENABLE ROW LEVEL SECURITY;
ALTER TABLE {SCHEMA}.repos ENABLE ROW LEVEL SECURITY;
ALTER TABLE {SCHEMA}.origins ENABLE ROW LEVEL SECURITY;
ALTER TABLE {SCHEMA}.ops ENABLE ROW LEVEL SECURITY;
CREATE POLICY see ON {SCHEMA}.epochs FOR SELECT USING (true);
CREATE POLICY see ON {SCHEMA}.repos FOR SELECT USING (pg_has_role(current_user, role, 'MEMBER'));
CREATE POLICY see ON {SCHEMA}.origins FOR SELECT USING (true);
CREATE POLICY own ON {SCHEMA}.origins FOR INSERT WITH CHECK (role = current_user AND current_user = session_user);
CREATE POLICY see ON {SCHEMA}.ops FOR SELECT USING (project IN (SELECT r.project FROM {SCHEMA}.repos r));
CREATE POLICY own ON {SCHEMA}.ops FOR INSERT WITH CHECK (
    current_user = session_user
    AND project IN (SELECT r.project FROM {SCHEMA}.repos r)
    AND origin IN (SELECT o.origin FROM {SCHEMA}.origins o WHERE o.role = current_user)
    AND epoch = (SELECT max(e.n) FROM {SCHEMA}.epochs e)
    -- A change of tomorrow would win against all that is made until then.
    AND hlc >> 16 <= extract(epoch FROM clock_timestamp()) * 1000 + {_AHEAD_MS}
);

GRANT USAGE ON SCHEMA {SCHEMA} TO {MEMBERS};
GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {MEMBERS};
GRANT INSERT (origin) ON {SCHEMA}.origins TO {MEMBERS};
GRANT INSERT ON {SCHEMA}.ops TO {MEMBERS};
COMMIT;
"""

RESTORED = f"""\
-- Run this once after the database was restored from a backup, before members connect: what they are about to send was
-- numbered for the database of before. They notice, and send again what the backup does not have.
INSERT INTO {SCHEMA}.epochs DEFAULT VALUES;
"""


def compact_sql(days: int) -> str:
    """Return the SQL that deletes what was replaced more than so many days ago."""
    return f"""\
-- Deletes changes that a later one of the same hint or note replaced more than {days} days ago. The last change of an
-- origin stays, since the next one follows its number, and so do deletions. Run it as the owner of the tables.
BEGIN;
DELETE FROM {SCHEMA}.ops AS old
WHERE EXISTS (
    SELECT FROM {SCHEMA}.ops AS later
    WHERE later.project = old.project AND later.kind = old.kind AND later.key = old.key
      AND (later.hlc, later.origin) > (old.hlc, old.origin)
      AND later.hlc >> 16 < (extract(epoch FROM now()) - {days} * 86400) * 1000
) AND EXISTS (
    SELECT FROM {SCHEMA}.ops AS next
    WHERE next.project = old.project AND next.origin = old.origin AND next.n > old.n
);
COMMIT;
VACUUM (ANALYZE) {SCHEMA}.ops;
"""


# What a member asks

HELLO = f"""\
SELECT extract(epoch FROM clock_timestamp())::float8 AS now, current_user::text AS role, e.n AS epoch_number,
    e.epoch::text AS epoch, e.format,
    pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS read_only
FROM {SCHEMA}.epochs e ORDER BY e.n DESC LIMIT 1"""

REPOS = f"SELECT DISTINCT project FROM {SCHEMA}.repos WHERE project = ANY($1::text[])"
ALL_REPOS = f"SELECT DISTINCT project FROM {SCHEMA}.repos ORDER BY project LIMIT {limits.TEAM_SHARED_REPOS}"

REGISTER = f"INSERT INTO {SCHEMA}.origins (origin) VALUES ($1::uuid) ON CONFLICT DO NOTHING"
OWNER = f"SELECT role::text FROM {SCHEMA}.origins WHERE origin = $1::uuid"
ROLES = f"SELECT origin::text, role::text FROM {SCHEMA}.origins WHERE origin = ANY($1::uuid[])"

# A step in the index for each origin, whatever their number of rows.
HEADS = f"""\
WITH RECURSIVE heads AS (
    SELECT p.project, (
        SELECT o.origin FROM {SCHEMA}.ops o WHERE o.project = p.project ORDER BY o.origin LIMIT 1
    ) AS origin FROM unnest($1::text[]) AS p(project)
    UNION ALL
    SELECT h.project, (
        SELECT o.origin FROM {SCHEMA}.ops o WHERE o.project = h.project AND o.origin > h.origin
        ORDER BY o.origin LIMIT 1
    ) FROM heads h WHERE h.origin IS NOT NULL
)
SELECT project, origin::text, (
    SELECT o.n FROM {SCHEMA}.ops o WHERE o.project = h.project AND o.origin = h.origin ORDER BY o.n DESC LIMIT 1
) AS n FROM heads h WHERE origin IS NOT NULL"""

_COLUMNS = "o.project, o.origin::text AS origin, o.n, o.hlc, o.kind, o.key, o.body"

ROWS = f"""\
SELECT {_COLUMNS} FROM unnest($1::text[], $2::uuid[], $3::bigint[]) AS c(project, origin, n)
CROSS JOIN LATERAL (
    SELECT * FROM {SCHEMA}.ops o WHERE o.project = c.project AND o.origin = c.origin AND o.n > c.n ORDER BY o.n LIMIT $4
) AS o LIMIT $4"""

PUSH = f"""\
INSERT INTO {SCHEMA}.ops (project, origin, n, hlc, kind, key, body, epoch)
SELECT project, $1::uuid, n, hlc, kind, key, body, $2
FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[])
    AS rows(project, n, hlc, kind, key, body)"""

CHANNEL = "nudge_team_{0}"
"""Of a repo, by the MD5 of its name: a notification wakes those who share it. It only says that there may be news."""
NOTIFY = "SELECT pg_notify('nudge_team_' || md5(project), '') FROM unnest($1::text[]) AS p(project)"

# For `nudge team doctor`.
RIGHTS = f"""\
SELECT r.rolsuper, r.rolbypassrls,
    pg_has_role(current_user, '{MEMBERS}', 'MEMBER') AS is_member,
    has_table_privilege('{SCHEMA}.ops', 'UPDATE') OR has_any_column_privilege('{SCHEMA}.ops', 'UPDATE') AS may_update,
    has_table_privilege('{SCHEMA}.ops', 'DELETE') AS may_delete,
    has_table_privilege('{SCHEMA}.ops', 'TRUNCATE') AS may_truncate,
    has_table_privilege('{SCHEMA}.repos', 'INSERT') OR has_any_column_privilege('{SCHEMA}.repos', 'UPDATE')
        AS may_let_in,
    (SELECT bool_and(c.relrowsecurity) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = '{SCHEMA}' AND c.relkind = 'r') AS has_policies,
    coalesce((SELECT s.ssl FROM pg_stat_ssl s WHERE s.pid = pg_backend_pid()), false) AS tls,
    current_setting('server_version') AS version
FROM pg_roles r WHERE r.rolname = current_user"""
PROBES = {
    "change a row of the log": f"UPDATE {SCHEMA}.ops SET body = body WHERE false",
    "delete from the log": f"DELETE FROM {SCHEMA}.ops WHERE false",
    "empty the log": f"TRUNCATE {SCHEMA}.ops",
    "let itself into a repo": f"INSERT INTO {SCHEMA}.repos VALUES ('nudge-team-doctor', current_user)",
    "write in the name of another role": (
        f"INSERT INTO {SCHEMA}.origins (origin, role) VALUES (gen_random_uuid(), 'postgres')"
    ),
}
"""What a member must not be able to do; each is tried in a transaction that is rolled back."""

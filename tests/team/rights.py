"""What a member who connects with psql sees and writes: only what the policies allow, however it tries."""

# ruff: noqa: S608 - SQL that tries what it should not
from __future__ import annotations

from tests.team.machines import REPO
from tests.team.postgres import Postgres

_OTHER = "github.com/acme/other"
_NOW = "(extract(epoch FROM now()) * 1000)::bigint << 16"
_EPOCH = "(SELECT max(n) FROM nudge_team.epochs)"
_ALICE = "10000000-0000-4000-8000-000000000001"
_MALLORY = "20000000-0000-4000-8000-000000000002"


def _insert(project: str, origin: str, n: int = 1, clock: str = _NOW, epoch: str = _EPOCH) -> str:
    values = f"'{project}', '{origin}', {n}, {clock}, 'note', 'A title', 'written as {origin}', {epoch}"
    return f"INSERT INTO nudge_team.ops VALUES ({values});"


_LIE = "CREATE FUNCTION pg_temp.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';"

REFUSED = {
    "read another repo's rows": f"SELECT 1 / count(*) FROM nudge_team.ops WHERE project = '{REPO}'",
    "read them with row security off": "SET row_security = off; SELECT count(*) FROM nudge_team.ops",
    "set a variable": (
        f"SELECT set_config('nudge.role', 'alice', false); SELECT set_config('role', 'alice', false);"
        f"SELECT 1 / count(*) FROM nudge_team.ops WHERE project = '{REPO}'"
    ),
    "SET ROLE to another member": "SET ROLE alice",
    "SET SESSION AUTHORIZATION": "SET SESSION AUTHORIZATION alice",
    "shadow a function of the policies": (
        f"{_LIE} SET search_path = pg_temp, pg_catalog;SELECT 1 / count(*) FROM nudge_team.ops WHERE project = '{REPO}'"
    ),
    "leak rows through a function in the condition": (
        "CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " $$ BEGIN RAISE EXCEPTION 'leaked %', $1; END $$;"
        "SELECT 1 / count(*) FROM nudge_team.ops WHERE pg_temp.leak(body)"
    ),
    "write in a repo that it is not let into": _insert(REPO, _MALLORY),
    "write under another's origin": _insert(_OTHER, _ALICE),
    "register an origin for another": (
        "INSERT INTO nudge_team.origins (origin, role) VALUES (gen_random_uuid(), 'alice')"
    ),
    "take an origin over": f"UPDATE nudge_team.origins SET role = 'mallory' WHERE origin = '{_ALICE}'",
    "write as another through its function": f"SELECT public.write_for('{_OTHER}', '{_ALICE}')",
    "leave a gap": _insert(_OTHER, _MALLORY, n=7),
    "write a number again": _insert(_OTHER, _MALLORY, n=1),
    "write for another epoch": _insert(_OTHER, _MALLORY, n=2, epoch="0"),
    "write a change of tomorrow": _insert(_OTHER, _MALLORY, n=2, clock=f"({_NOW}) + (86400000::bigint << 16)"),
    "write more than a body may have": (
        f"INSERT INTO nudge_team.ops SELECT '{_OTHER}', '{_MALLORY}', 2, {_NOW}, 'note', 'A',"
        f" repeat('x', 200000), {_EPOCH}"
    ),
    "change a row": "UPDATE nudge_team.ops SET body = '{}'",
    "delete a row": "DELETE FROM nudge_team.ops",
    "empty the log": "TRUNCATE nudge_team.ops",
    "copy over it": "COPY nudge_team.ops FROM PROGRAM 'true'",
    "let itself into a repo": f"INSERT INTO nudge_team.repos VALUES ('{REPO}', 'mallory')",
    "grant itself a role": "GRANT repo_0 TO mallory",
    "turn the policies off": "ALTER TABLE nudge_team.ops DISABLE ROW LEVEL SECURITY",
    "drop a policy": "DROP POLICY see ON nudge_team.ops",
    "replace the trigger's function": (
        "CREATE OR REPLACE FUNCTION nudge_team.refuse_gaps() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RETURN NULL; END'"
    ),
    "make a table in the schema": "CREATE TABLE nudge_team.mine (n integer)",
    "start a new epoch": "INSERT INTO nudge_team.epochs DEFAULT VALUES",
}
"""Each must end in an error: of the server, or by dividing by the number of rows that it sees, which must be 0."""

ALLOWED = {
    "register an origin of its own": f"INSERT INTO nudge_team.origins (origin) VALUES ('{_MALLORY}')",
    "write under it where it is let in": _insert(_OTHER, _MALLORY),
    "read what it wrote": "SELECT 1 / count(*) FROM nudge_team.ops",
}


def rights(postgres: Postgres) -> str:
    """Mallory is a member, and let into one repo only; alice writes in another. A stranger sees nothing at all."""
    postgres.psql("CREATE ROLE mallory LOGIN; GRANT nudge_team TO mallory; CREATE ROLE stranger LOGIN")
    postgres.psql(
        f"INSERT INTO nudge_team.repos VALUES ('{_OTHER}', 'mallory'), ('{_OTHER}', 'alice')", database="team"
    )
    own = f"INSERT INTO nudge_team.origins (origin) VALUES ('{_ALICE}');" + _insert(REPO, _ALICE)
    postgres.psql(own, role="alice", database="team")
    function = (
        "CREATE FUNCTION public.write_for(text, text) RETURNS void LANGUAGE sql SECURITY DEFINER AS"
        f" $$ INSERT INTO nudge_team.ops VALUES ($1, $2::uuid, 1, {_NOW}, 'note', 'A', '{{}}', {_EPOCH}) $$;"
        "ALTER FUNCTION public.write_for OWNER TO alice"
    )
    postgres.psql(function, database="team")
    for what, sql in ALLOWED.items():
        done = postgres.psql(sql, role="mallory", database="team", check=False)
        assert done.returncode == 0, (what, done.stderr)
    for what, sql in REFUSED.items():
        done = postgres.psql(sql, role="mallory", database="team", check=False)
        assert done.returncode != 0 and f"written as {_ALICE}" not in done.stderr, (what, done.stdout, done.stderr)
    for sql in ("SELECT * FROM nudge_team.epochs", "SELECT * FROM nudge_team.ops"):
        done = postgres.psql(sql, role="stranger", database="team", check=False)
        assert "42501" in done.stderr, done.stderr
    kept = postgres.rows("SELECT project, count(*) FROM nudge_team.ops GROUP BY 1 ORDER BY 1")
    assert kept == [[REPO, "1"], [_OTHER, "1"]], kept
    return f"{len(ALLOWED)} things allowed, {len(REFUSED)} refused"

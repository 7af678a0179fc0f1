"""The database's schema, as numbered migrations: `user_version` says how many of them a file has had.

A migration is never edited after its release: a later one corrects it.
"""

from __future__ import annotations

from nudge.core.passages import rows_of
from nudge.storage.archive_migration import KEPT_WITH_ARCHIVE
from nudge.storage.conversions import index_stored_files, index_stored_passages, keep_facts_that_ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

    Migration = Sequence[str] | Callable[[sqlite3.Connection], None]

TOKENIZER = "porter unicode61"

_HISTORY = (
    """CREATE TABLE sessions (
        id TEXT PRIMARY KEY, project TEXT, repo TEXT, cwd TEXT, client TEXT NOT NULL,
        started_at INTEGER NOT NULL, ended_at INTEGER, summary TEXT
    ) WITHOUT ROWID""",
    # No summary: the session lives, or events came in after it had ended.
    "CREATE INDEX sessions_unsettled ON sessions(started_at) WHERE summary IS NULL",
    "CREATE INDEX sessions_started ON sessions(started_at)",
    "CREATE INDEX sessions_project ON sessions(project, started_at)",
    # `project` of sessions and observations is an identity; its last part is what people call it.
    "CREATE TABLE projects (identity TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX projects_name ON projects(name)",
    # Where work trees of a project are or were: a file has one history in all of them.
    "CREATE TABLE clones (project TEXT NOT NULL, root TEXT NOT NULL, PRIMARY KEY (project, root)) WITHOUT ROWID",
    "CREATE INDEX clones_root ON clones(root)",
    """CREATE TABLE prompts (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
        client_prompt_id TEXT, timestamp INTEGER NOT NULL,
        source TEXT NOT NULL CHECK (source IN ('user', 'agent')), content TEXT NOT NULL
    )""",
    "CREATE INDEX prompts_session ON prompts(session_id, timestamp)",
    # `details` is the text in `metadata` that a search looks at beside the content: what an error said, a description.
    """CREATE TABLE observations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
        prompt_id INTEGER REFERENCES prompts(id) ON DELETE SET NULL, timestamp INTEGER NOT NULL, project TEXT,
        obs_type TEXT NOT NULL, source_event TEXT, tool_name TEXT, file_path TEXT, content TEXT NOT NULL,
        metadata TEXT NOT NULL DEFAULT '{}', is_pinned INTEGER NOT NULL DEFAULT 0, details TEXT NOT NULL DEFAULT '',
        branch TEXT, clone TEXT
    )""",
    "CREATE INDEX observations_session ON observations(session_id, timestamp)",
    "CREATE INDEX observations_prompt ON observations(prompt_id) WHERE prompt_id IS NOT NULL",
    "CREATE INDEX observations_type ON observations(obs_type, timestamp)",
    "CREATE INDEX observations_file ON observations(file_path, timestamp) WHERE file_path IS NOT NULL",
    "CREATE INDEX observations_project ON observations(project, timestamp)",
    # The files of a change beside the one that the observation itself names.
    """CREATE TABLE touched_files (
        file_path TEXT NOT NULL, observation_id INTEGER NOT NULL REFERENCES observations(id) ON DELETE CASCADE,
        PRIMARY KEY (file_path, observation_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX touched_files_observation ON touched_files(observation_id)",
    "CREATE TABLE events (event_id TEXT PRIMARY KEY, timestamp INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TABLE injections (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, timestamp INTEGER NOT NULL, items TEXT NOT NULL, text TEXT
        NOT NULL )""",
    "CREATE INDEX injections_session ON injections(session_id, timestamp)",
    f"""CREATE VIRTUAL TABLE observations_fts USING fts5(
        content, file_path, details, content='observations', content_rowid='id', tokenize='{TOKENIZER}'
    )""",
    """CREATE TRIGGER observations_inserted AFTER INSERT ON observations BEGIN
        INSERT INTO observations_fts(rowid, content, file_path, details)
        VALUES (new.id, new.content, new.file_path, new.details);
    END""",
    """CREATE TRIGGER observations_deleted AFTER DELETE ON observations BEGIN
        INSERT INTO observations_fts(observations_fts, rowid, content, file_path, details)
        VALUES ('delete', old.id, old.content, old.file_path, old.details);
    END""",
    """CREATE TRIGGER observations_updated AFTER UPDATE OF content, file_path, details ON observations BEGIN
        INSERT INTO observations_fts(observations_fts, rowid, content, file_path, details)
        VALUES ('delete', old.id, old.content, old.file_path, old.details);
        INSERT INTO observations_fts(rowid, content, file_path, details)
        VALUES (new.id, new.content, new.file_path, new.details);
    END""",
)

_MEMORIES = (
    """CREATE TABLE notes (
        id INTEGER PRIMARY KEY AUTOINCREMENT, uid TEXT NOT NULL UNIQUE, tier TEXT NOT NULL, namespace TEXT NOT NULL,
        kind TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, tags TEXT NOT NULL, priority INTEGER NOT NULL,
        confidence REAL NOT NULL, source TEXT NOT NULL, access_count INTEGER NOT NULL DEFAULT 0,
        created_at REAL NOT NULL, updated_at REAL NOT NULL, last_accessed_at REAL, expires_at REAL,
        metadata TEXT NOT NULL, origin TEXT NOT NULL,
        namespace_key TEXT GENERATED ALWAYS AS (char(57344) || hex(namespace)) VIRTUAL
    )""",
    # Several attempts may have one goal, which is their title.
    "CREATE UNIQUE INDEX notes_title ON notes(title, namespace) WHERE kind <> 'attempt'",
    # Has all that counting needs: a note's row with its content is ten times as long.
    "CREATE INDEX notes_namespace ON notes(namespace, tier, expires_at)",
    "CREATE INDEX notes_kind ON notes(kind, updated_at)",
    "CREATE INDEX notes_order ON notes(priority DESC, updated_at DESC, id DESC)",
    "CREATE INDEX notes_expiry ON notes(expires_at) WHERE expires_at IS NOT NULL",
    """CREATE TABLE note_links (
        source_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
        target_id INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE,
        relation TEXT NOT NULL, created_at REAL NOT NULL, PRIMARY KEY (source_id, target_id, relation)
    ) WITHOUT ROWID""",
    "CREATE INDEX note_links_target ON note_links(target_id)",
    # `note` is the whole note as JSON, its links included: both come back when it is restored.
    """CREATE TABLE archived_notes (
        id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, title TEXT NOT NULL,
        note TEXT NOT NULL, archived_at REAL NOT NULL, archive_reason TEXT NOT NULL
    )""",
    "CREATE INDEX archived_notes_namespace ON archived_notes(namespace, archived_at)",
    "CREATE INDEX archived_notes_time ON archived_notes(archived_at)",
    # `namespace_key` is one word whatever the namespace is: a search in one repo reads only that repo's entries. It
    # begins with a private-use character, which no word of a query has: "6462" must not find the namespace `db`.
    f"""CREATE VIRTUAL TABLE notes_fts USING fts5(
        title, content, tags, namespace_key, content='notes', content_rowid='id', tokenize='{TOKENIZER}'
    )""",
    # A title mostly repeats words of the content, which therefore count twice: no column needs more weight.
    "INSERT INTO notes_fts(notes_fts, rank) VALUES ('rank', 'bm25(1.0, 1.0, 1.0, 0.0)')",
    # Notes are read more often than written: a word is looked up in each segment of the index.
    "INSERT INTO notes_fts(notes_fts, rank) VALUES ('automerge', 2)",
    "INSERT INTO notes_fts(notes_fts, rank) VALUES ('usermerge', 2)",
    """CREATE TRIGGER notes_inserted AFTER INSERT ON notes BEGIN
        INSERT INTO notes_fts(rowid, title, content, tags, namespace_key)
        VALUES (new.id, new.title, new.content, new.tags, char(57344) || hex(new.namespace));
    END""",
    """CREATE TRIGGER notes_deleted AFTER DELETE ON notes BEGIN
        INSERT INTO notes_fts(notes_fts, rowid, title, content, tags, namespace_key)
        VALUES ('delete', old.id, old.title, old.content, old.tags, char(57344) || hex(old.namespace));
    END""",
    """CREATE TRIGGER notes_updated AFTER UPDATE OF title, content, tags, namespace ON notes BEGIN
        INSERT INTO notes_fts(notes_fts, rowid, title, content, tags, namespace_key)
        VALUES ('delete', old.id, old.title, old.content, old.tags, char(57344) || hex(old.namespace));
        INSERT INTO notes_fts(rowid, title, content, tags, namespace_key)
        VALUES (new.id, new.title, new.content, new.tags, char(57344) || hex(new.namespace));
    END""",
    # Results of recent writes by their `once` key, in the transaction of the write: a repeated call gets the same.
    """CREATE TABLE answers (
        once TEXT PRIMARY KEY, answered_at REAL NOT NULL, request TEXT, result TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX answers_time ON answers(answered_at)",
)

_FACTS = (
    # One row for each session in which an answer worked.
    """CREATE TABLE facts (
        project TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, tool TEXT NOT NULL, error TEXT NOT NULL,
        answer TEXT NOT NULL, session_id TEXT NOT NULL, failure_id INTEGER NOT NULL, success_id INTEGER NOT NULL,
        timestamp INTEGER NOT NULL, PRIMARY KEY (project, kind, subject, answer, session_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX facts_failure ON facts(failure_id)",
    "CREATE INDEX facts_success ON facts(success_id)",
    # What is purged teaches nothing any more.
    """CREATE TRIGGER facts_of_deleted AFTER DELETE ON observations BEGIN
        DELETE FROM facts WHERE failure_id = old.id;
        DELETE FROM facts WHERE success_id = old.id;
    END""",
    # In which sessions an invocation of a tool ran, of test runners and of tools that a fact is about.
    """CREATE TABLE invocations (
        project TEXT NOT NULL, tool TEXT NOT NULL, head TEXT NOT NULL, session_id TEXT NOT NULL,
        timestamp INTEGER NOT NULL, PRIMARY KEY (project, tool, head, session_id)
    ) WITHOUT ROWID""",
)

_LEDGER = (
    # Every line that a session was told. `name` is the same in every session, `uses` what shows that it was used.
    """CREATE TABLE told (
        id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, timestamp INTEGER NOT NULL, moment TEXT NOT NULL,
        kind TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, reason TEXT NOT NULL, uses TEXT NOT NULL,
        is_shadow INTEGER NOT NULL, used_at INTEGER
    )""",
    "CREATE INDEX told_session ON told(session_id)",
    "CREATE INDEX told_name ON told(name, timestamp)",
    "CREATE INDEX told_time ON told(timestamp)",
    """CREATE TRIGGER told_of_deleted_session AFTER DELETE ON sessions BEGIN
        DELETE FROM told WHERE session_id = old.id;
        DELETE FROM coins WHERE session_id = old.id;
    END""",
    """CREATE TRIGGER told_of_deleted_note AFTER DELETE ON notes BEGIN
        DELETE FROM told WHERE name = 'm' || old.id;
    END""",
    "CREATE TABLE banned_lines (name TEXT PRIMARY KEY, timestamp INTEGER NOT NULL) WITHOUT ROWID",
    # Which sessions are told nothing, so that the others can be compared with them.
    """CREATE TABLE coins (
        session_id TEXT PRIMARY KEY, is_shadow INTEGER NOT NULL, timestamp INTEGER NOT NULL
    ) WITHOUT ROWID""",
)

_JOURNAL = (
    # An attempt's state is in its metadata, so that exports, imports and the archive carry it. One with a session and
    # without an outcome is open.
    "ALTER TABLE notes ADD COLUMN attempt_session TEXT"
    " GENERATED ALWAYS AS (json_extract(metadata, '$.session_id')) VIRTUAL",
    "ALTER TABLE notes ADD COLUMN attempt_outcome TEXT"
    " GENERATED ALWAYS AS (json_extract(metadata, '$.outcome')) VIRTUAL",
    "CREATE INDEX attempts_session ON notes(attempt_session, id) WHERE kind = 'attempt'",
    "CREATE INDEX attempts_open ON notes(namespace) WHERE kind = 'attempt' AND attempt_session IS NOT NULL"
    " AND attempt_outcome IS NULL",
)

_LINES_OF_PROJECTS = (
    # A line's name says nothing about its project (`fact make test`): bans and use are counted for each one.
    "ALTER TABLE told ADD COLUMN project TEXT NOT NULL DEFAULT ''",
    "UPDATE told SET project = coalesce((SELECT project FROM sessions WHERE id = session_id), '')",
    "ALTER TABLE banned_lines RENAME TO banned_names",
    """CREATE TABLE banned_lines (
        project TEXT NOT NULL, name TEXT NOT NULL, timestamp INTEGER NOT NULL, PRIMARY KEY (project, name)
    ) WITHOUT ROWID""",
    # A ban stays in force where the line was told; when that is no longer stored, in every project.
    "INSERT OR IGNORE INTO banned_lines SELECT told.project, name, banned_names.timestamp FROM banned_names"
    " JOIN told USING (name)",
    "INSERT OR IGNORE INTO banned_lines SELECT identity, banned_names.name, timestamp FROM banned_names, projects"
    " WHERE banned_names.name NOT IN (SELECT name FROM banned_lines)",
    "DROP TABLE banned_names",
)

_KEPT_KINDS = (
    # Decisions, lessons and their like had the tier `mid` by default, and vanished after 7 days.
    "UPDATE notes SET tier = 'long', expires_at = NULL WHERE tier = 'mid'"
    " AND kind NOT IN ('note', 'change', 'session_summary')"
    " AND (expires_at IS NULL OR expires_at > CAST(strftime('%s', 'now') AS INTEGER))",
)

_FACT_DETAILS = (
    # What a fact is matched by, as JSON; empty for those of earlier versions.
    "ALTER TABLE facts ADD COLUMN details TEXT NOT NULL DEFAULT '{}'",
)

_PASSAGES = (
    # Rows are numbered by `nudge.core.passages`. The text is stored once more, so that it can be shown and embedded.
    f"CREATE VIRTUAL TABLE passages USING fts5(title, content, tokenize='{TOKENIZER}')",
    f"""CREATE TRIGGER passages_of_deleted_note AFTER DELETE ON notes BEGIN
        DELETE FROM passages WHERE {rows_of("old.id")};
    END""",  # noqa: S608 - constants only
)


_NOTE_FILES = (
    # An index of the files in a note's metadata (`is_given`), and of the paths that its text names:
    # `nudge.core.note_files`.
    """CREATE TABLE note_files (
        path TEXT NOT NULL, note_id INTEGER NOT NULL, is_given INTEGER NOT NULL, PRIMARY KEY (path, note_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX note_files_note ON note_files(note_id)",
    """CREATE TRIGGER note_files_of_deleted_note AFTER DELETE ON notes BEGIN
        DELETE FROM note_files WHERE note_id = old.id;
    END""",
)


_PINNED_NOTES = (
    # Every start of a session asks for them.
    "CREATE INDEX notes_pinned ON notes(namespace) WHERE instr(tags, '\"pinned\"') > 0",
)


_UNUSED_LINES = (
    # Why a line can no longer be used: the session had done what it says before, or another line that says it was used.
    "ALTER TABLE told ADD COLUMN unused TEXT",
)


_BANS_OF_FACTS = (
    # Earlier versions told a fact also as the hint that they had made of it; the ban of that line stays in force.
    """INSERT OR IGNORE INTO banned_lines
        SELECT banned_lines.project, 'fact ' || facts.subject, banned_lines.timestamp FROM banned_lines
        JOIN told ON told.name = banned_lines.name AND told.project = banned_lines.project AND told.kind = 'hint'
        JOIN json_each(CASE WHEN json_valid(told.uses) THEN told.uses ELSE '[]' END) AS used
            ON json_extract(used.value, '$[0]') = 'command'
        JOIN facts ON facts.project = banned_lines.project AND facts.answer IN (
            json_extract(used.value, '$[1]'), json_extract(used.value, '$[1]') || ' …'
        )""",
)


_MERGED_PASSAGES = (  # as the index of notes: a word is looked up in each segment
    "INSERT INTO passages(passages, rank) VALUES ('automerge', 2)",
    "INSERT INTO passages(passages, rank) VALUES ('usermerge', 2)",
)


_CALLED_COUNTS = (
    # What `increment_tool_count` counted and `reset_tool_count` reset, for a server that starts later.
    """CREATE TABLE called_counts (
        session_id TEXT PRIMARY KEY, number INTEGER NOT NULL, counted_at REAL NOT NULL, reset_at REAL NOT NULL
    ) WITHOUT ROWID""",
)


_PROPOSALS = (
    # What a language model said about notes. `details` is what would change, `undo` what did.
    """CREATE TABLE proposals (
        id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, details TEXT NOT NULL,
        state TEXT NOT NULL, model TEXT NOT NULL, proposed_at REAL NOT NULL, decided_at REAL, undo TEXT,
        UNIQUE (kind, name)
    )""",
    "CREATE INDEX proposals_state ON proposals(state, id)",
    """CREATE TABLE proposal_notes (
        note_id INTEGER NOT NULL, proposal_id INTEGER NOT NULL REFERENCES proposals(id) ON DELETE CASCADE,
        PRIMARY KEY (note_id, proposal_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX proposal_notes_proposal ON proposal_notes(proposal_id)",
    # The state of a note for which proposals were made without being asked.
    """CREATE TABLE examined_notes (
        note_id INTEGER PRIMARY KEY REFERENCES notes(id) ON DELETE CASCADE, updated_at REAL NOT NULL
    )""",
    # A text that changed may deserve another answer. What was accepted can be undone as long as its notes exist.
    """CREATE TRIGGER proposals_of_changed_note AFTER UPDATE OF title, content ON notes
        WHEN old.title IS NOT new.title OR old.content IS NOT new.content BEGIN
        DELETE FROM proposals WHERE state <> 'accepted'
            AND id IN (SELECT proposal_id FROM proposal_notes WHERE note_id = old.id);
    END""",
    """CREATE TRIGGER proposals_of_deleted_note AFTER DELETE ON notes BEGIN
        DELETE FROM proposals WHERE id IN (SELECT proposal_id FROM proposal_notes WHERE note_id = old.id)
            AND (state <> 'accepted' OR NOT EXISTS (SELECT 1 FROM archived_notes WHERE id = old.id));
    END""",
    """CREATE TRIGGER proposals_of_purged_note AFTER DELETE ON archived_notes
        WHEN NOT EXISTS (SELECT 1 FROM notes WHERE id = old.id) BEGIN
        DELETE FROM proposals WHERE id IN (SELECT proposal_id FROM proposal_notes WHERE note_id = old.id);
    END""",
)


# A team's shared log: where it is, what of which repos goes there, what waits, what was received (`nudge.team.store`).
_TEAM = (
    """CREATE TABLE team (
        id INTEGER PRIMARY KEY CHECK (id = 1), url TEXT NOT NULL, origin TEXT NOT NULL, home TEXT NOT NULL,
        epoch TEXT NOT NULL, joined_at REAL NOT NULL, contact_at REAL
    )""",
    # `is_gathered`: the hints that were there when they were first shared are in the outbox.
    """CREATE TABLE team_repos (
        project TEXT PRIMARY KEY, notes INTEGER NOT NULL, hints INTEGER NOT NULL, is_gathered INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # Notes that were changed and are not in the outbox yet, by their titles.
    """CREATE TABLE team_changes (
        project TEXT NOT NULL, title TEXT NOT NULL, PRIMARY KEY (project, title)
    ) WITHOUT ROWID""",
    """CREATE TABLE team_outbox (
        project TEXT NOT NULL, n INTEGER NOT NULL, clock INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        body TEXT NOT NULL, PRIMARY KEY (project, n)
    ) WITHOUT ROWID""",
    # Of this store's own log: the last number given, and the last one that the server has.
    """CREATE TABLE team_numbers (
        project TEXT PRIMARY KEY, given INTEGER NOT NULL, sent INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # Of each origin's log: how much was received, and how much there is.
    """CREATE TABLE team_cursors (
        project TEXT NOT NULL, origin TEXT NOT NULL, n INTEGER NOT NULL, head INTEGER NOT NULL,
        PRIMARY KEY (project, origin)
    ) WITHOUT ROWID""",
    "CREATE TABLE team_roles (origin TEXT PRIMARY KEY, role TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE team_versions (
        project TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, clock INTEGER NOT NULL, origin TEXT NOT NULL,
        after INTEGER NOT NULL, is_live INTEGER NOT NULL, digest TEXT NOT NULL, n INTEGER NOT NULL,
        PRIMARY KEY (project, kind, key)
    ) WITHOUT ROWID""",
    # Versions that lost against one whose author had not seen them.
    """CREATE TABLE team_conflicts (
        id INTEGER PRIMARY KEY, project TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, clock INTEGER NOT NULL,
        origin TEXT NOT NULL, fields TEXT, won_clock INTEGER NOT NULL, won_origin TEXT NOT NULL,
        UNIQUE (project, kind, key, clock, origin)
    )""",
    """CREATE TABLE team_withheld (
        project TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, is_inbound INTEGER NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (project, kind, key)
    ) WITHOUT ROWID""",
    # Of each change log of hints: the last of its numbered changes that is in the outbox.
    "CREATE TABLE team_taken (log TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID",
    """CREATE TRIGGER team_note_added AFTER INSERT ON notes
    WHEN EXISTS (SELECT 1 FROM team_repos WHERE project = new.namespace AND notes) BEGIN
        INSERT OR IGNORE INTO team_changes VALUES (new.namespace, new.title);
    END""",
    # What a recall adds does not count: it leaves `updated_at` as it is.
    """CREATE TRIGGER team_note_changed AFTER UPDATE OF title, namespace, updated_at ON notes
    WHEN (new.title, new.namespace, new.updated_at) IS NOT (old.title, old.namespace, old.updated_at)
        AND EXISTS (SELECT 1 FROM team_repos WHERE project IN (old.namespace, new.namespace) AND notes) BEGIN
        INSERT OR IGNORE INTO team_changes VALUES (old.namespace, old.title);
        INSERT OR IGNORE INTO team_changes VALUES (new.namespace, new.title);
    END""",
    # That the time of a note was over here says nothing about the others' copies.
    """CREATE TRIGGER team_note_deleted AFTER DELETE ON notes
    WHEN (old.expires_at IS NULL OR old.expires_at > (julianday('now') - 2440587.5) * 86400.0)
        AND EXISTS (SELECT 1 FROM team_repos WHERE project = old.namespace AND notes) BEGIN
        INSERT OR IGNORE INTO team_changes VALUES (old.namespace, old.title);
    END""",
)


_WALL_CLOCK = "(julianday('now') - 2440587.5) * 86400.0"
_TEAM_BASES = (
    # Versions that others were made from, by their clocks: they are not lost, whenever they come.
    """CREATE TABLE team_bases (
        project TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, clock INTEGER NOT NULL,
        PRIMARY KEY (project, kind, key, clock)
    ) WITHOUT ROWID""",
    # When a title was last changed by the clock on the wall. It counts for a note that went away; one that is there has
    # its own time.
    "ALTER TABLE team_changes ADD COLUMN changed_at REAL",
    # The session of hints that were received: the next one begins without them.
    "ALTER TABLE team ADD COLUMN lifetime TEXT",
    *(f"DROP TRIGGER team_note_{change}" for change in ("added", "changed", "deleted")),
    f"""CREATE TRIGGER team_note_added AFTER INSERT ON notes
    WHEN EXISTS (SELECT 1 FROM team_repos WHERE project = new.namespace AND notes) BEGIN
        INSERT OR REPLACE INTO team_changes VALUES (new.namespace, new.title, {_WALL_CLOCK});
    END""",  # noqa: S608 - constants only
    f"""CREATE TRIGGER team_note_changed AFTER UPDATE OF title, namespace, updated_at ON notes
    WHEN (new.title, new.namespace, new.updated_at) IS NOT (old.title, old.namespace, old.updated_at)
        AND EXISTS (SELECT 1 FROM team_repos WHERE project IN (old.namespace, new.namespace) AND notes) BEGIN
        INSERT OR REPLACE INTO team_changes VALUES (old.namespace, old.title, {_WALL_CLOCK});
        INSERT OR REPLACE INTO team_changes VALUES (new.namespace, new.title, {_WALL_CLOCK});
    END""",  # noqa: S608 - constants only
    f"""CREATE TRIGGER team_note_deleted AFTER DELETE ON notes
    WHEN (old.expires_at IS NULL OR old.expires_at > {_WALL_CLOCK})
        AND EXISTS (SELECT 1 FROM team_repos WHERE project = old.namespace AND notes) BEGIN
        INSERT OR REPLACE INTO team_changes VALUES (old.namespace, old.title, {_WALL_CLOCK});
    END""",  # noqa: S608 - constants only
)


_IS_QUEUED = "INSERT OR REPLACE INTO notes_to_embed (note_id) VALUES (new.id);"
_VECTORS_OF_OLD = f"DELETE FROM passage_vectors WHERE {rows_of('old.id', 'passage')};"  # noqa: S608 - constants only
_HAS_MODEL = "EXISTS (SELECT 1 FROM embedding_model)"
_VECTORS = (
    # The model in use: one row, or none. Its directory is on this machine.
    """CREATE TABLE embedding_model (
        fingerprint TEXT PRIMARY KEY, directory TEXT NOT NULL, name TEXT NOT NULL, revision TEXT NOT NULL,
        sha256 TEXT NOT NULL, dimension INTEGER NOT NULL, bytes INTEGER NOT NULL
    )""",
    # Several for a passage: one of the whole, and one of each of its sentences. A number is never used again, so that
    # what is in memory can be brought up to date.
    """CREATE TABLE passage_vectors (
        n INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL, fingerprint TEXT NOT NULL, scale REAL NOT NULL,
        vector BLOB NOT NULL
    )""",
    "CREATE INDEX passage_vectors_passage ON passage_vectors(passage)",
    "CREATE TABLE removed_vectors (at INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER NOT NULL)",
    "CREATE TABLE notes_to_embed (n INTEGER PRIMARY KEY AUTOINCREMENT, note_id INTEGER NOT NULL UNIQUE)",
    """CREATE TRIGGER vectors_removed AFTER DELETE ON passage_vectors BEGIN
        INSERT INTO removed_vectors (n) VALUES (old.n);
    END""",
    f"""CREATE TRIGGER vectors_of_new_note AFTER INSERT ON notes WHEN {_HAS_MODEL} BEGIN
        {_IS_QUEUED}
    END""",
    f"""CREATE TRIGGER vectors_of_changed_note AFTER UPDATE OF title, content ON notes
    WHEN (old.title IS NOT new.title OR old.content IS NOT new.content) AND {_HAS_MODEL} BEGIN
        {_VECTORS_OF_OLD}
        {_IS_QUEUED}
    END""",
    f"""CREATE TRIGGER vectors_of_deleted_note AFTER DELETE ON notes BEGIN
        {_VECTORS_OF_OLD}
        DELETE FROM notes_to_embed WHERE note_id = old.id;
    END""",  # noqa: S608 - constants only
)


MIGRATIONS: tuple[Migration, ...] = (
    *(_HISTORY, _MEMORIES, _FACTS, _LEDGER, _JOURNAL, _LINES_OF_PROJECTS),
    *(_KEPT_KINDS, _PASSAGES, index_stored_passages, _FACT_DETAILS, keep_facts_that_ran),
    *(_NOTE_FILES, index_stored_files, _PINNED_NOTES, _UNUSED_LINES, _BANS_OF_FACTS, _MERGED_PASSAGES),
    *(_CALLED_COUNTS, _PROPOSALS, _TEAM, _VECTORS, _TEAM_BASES, KEPT_WITH_ARCHIVE),
)
LATEST = len(MIGRATIONS)


def read_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, steps: Sequence[Migration] = MIGRATIONS) -> None:
    """Apply the missing migrations in one transaction: a process that dies half-way leaves the old format intact."""
    connection.execute("BEGIN EXCLUSIVE")
    try:
        for step in steps[read_version(connection) :]:
            _apply(connection, step)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    if callable(step):
        step(connection)
        return
    for statement in step:
        connection.execute(statement)

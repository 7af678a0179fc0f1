"""The migration that keeps what names a note while the note is in the archive: it comes back under its own number."""

KEPT_WITH_ARCHIVE = (
    # `archive_notes` inserts the archived note before it deletes the other one, `restore` the other way around.
    "DROP TRIGGER told_of_deleted_note",
    """CREATE TRIGGER told_of_deleted_note AFTER DELETE ON notes
        WHEN NOT EXISTS (SELECT 1 FROM archived_notes WHERE id = old.id) BEGIN
        DELETE FROM told WHERE name = 'm' || old.id;
    END""",
    """CREATE TRIGGER told_of_purged_note AFTER DELETE ON archived_notes
        WHEN NOT EXISTS (SELECT 1 FROM notes WHERE id = old.id) BEGIN
        DELETE FROM told WHERE name = 'm' || old.id;
    END""",
    "DROP TRIGGER proposals_of_deleted_note",
    """CREATE TRIGGER proposals_of_deleted_note AFTER DELETE ON notes
        WHEN NOT EXISTS (SELECT 1 FROM archived_notes WHERE id = old.id) BEGIN
        DELETE FROM proposals WHERE id IN (SELECT proposal_id FROM proposal_notes WHERE note_id = old.id);
    END""",
    # Those that are kept only for an undo: looked for every minute.
    "CREATE INDEX archived_notes_deleted ON archived_notes(archived_at) WHERE archive_reason = 'deleted'",
)

"""Every limit of the product, with its unit."""

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# The wire
MAX_BODY_BYTES = 1 * MIB
MAX_STDIO_LINE_BYTES = 1 * MIB
MAX_JSON_DEPTH = 64
FAST_JSON_VALUES = 10_000  # of a large message that the C scanner takes, in 5 ms
MAX_JSON_VALUES = 200_000  # commas and opening brackets of a message larger than SMALL_JSON_BYTES
MAX_BATCH = 100
MAX_BATCH_ANSWER_BYTES = 4 * MIB  # of answers in one batch; the calls behind them are not executed
MAX_INTEGER_DIGITS = 30
MAX_NUMBER_CHARS = 1_000  # of a number with a fraction or an exponent
SMALL_JSON_BYTES = 64 * KIB  # what the event loop itself parses; larger messages go to a worker thread
DEFAULT_PORT = 8765
PORTS_TRIED = 100

# Hints
MAX_VALUE_BYTES = 8 * KIB
MAX_VALUE_INPUT_BYTES = 64 * KIB  # of a value that is piped in: JSON may come with blanks that are not kept
MAX_NAME_CHARS = 128  # component and key
MAX_TEMPLATE_DEFAULTS = 100
MAX_REASON_CHARS = 500
MAX_ADDED_BY_CHARS = 128
MAX_TAGS = 20
MAX_TAG_CHARS = 64
MAX_COMPONENTS = 500
MAX_HINTS_PER_COMPONENT = 200
MAX_HINTS = 5_000
MIN_PRIORITY, MAX_PRIORITY, DEFAULT_PRIORITY = 1, 10, 5
DEFAULT_CONFIDENCE = 0.5
DOUBTFUL_CONFIDENCE = 0.5  # of a note: below it, lists say so and a session's start does not tell it
MAX_BUMP = 1_000
MAX_TTL_SECONDS = 366 * 86_400
DEFAULT_QUERY_LIMIT = 10
MAX_QUERY_LIMIT = 100
MAX_SCANNED = 500  # commands in one scan; reconciling them is one step on the event loop
MAX_REASONS = 12  # in one explanation
MAX_WHY_NOT = 20  # variants that one miss explains
MAX_QUERY_WHY_NOT = 5  # hints that a query which found none explains
MAX_NEAR = 5  # other hints that one miss names
MAX_NEAR_CHECKED = 50  # of which it asks whether they apply here
MAX_KNOWN_KEYS = 10  # keys that one miss suggests
MAX_QUERY_TEXT_CHARS = 256
INDEXED_WORDS = 100  # of one hint; one that has more is looked at by every search for words
MAX_QUERY_ITEMS = 100  # keys or tags in one query
MAX_USE_COUNT = 1_000_000_000
MAX_VERSION = 2**53 - 1  # the largest integer that every JSON reader keeps exact
MAX_TIMESTAMP = 7_258_118_400  # 2200-01-01: until then a float tells microseconds apart
PAGE_BYTES = 256 * KIB  # of an answer that goes in pages, as JSON: parsing it holds the loop for 3 ms
MAX_EARLIER_VERSIONS = 10  # of one hint
EARLIER_VERSIONS_BYTES = MAX_VALUE_BYTES + 2 * KIB  # of them: one of the largest size fits
MAX_IMPORTED_HINTS = 20_000  # of one import; some may be skipped, so more than MAX_HINTS
MAX_IMPORT_ROW_CHARS = 1 * MIB  # of one hint or note, as JSON: the longest note, each character escaped, takes half
MAX_IMPORT_BODY_BYTES = 16 * MIB  # of an import over HTTP
TRANSFER_FILE_KEPT = 7_200.0  # seconds, which is more than LONG_CALL_TIMEOUT
TRANSFER_PIECE = 256 * KIB  # of a large import or export, read or written at once
APPENDED_HINTS = 50  # the most that one change appends to the log; for more the whole log is written
MAX_IMPORT_REASONS = 100  # skipped hints that one import explains
# seconds that a worker thread keeps the interpreter while the event loop waits for it; Python's own are 5 ms, and a
# turn of the loop asks several times
SWITCH_INTERVAL = 0.001
# seconds of a worker thread's work on thousands of hints, after which it waits for a turn of the event loop.
# SWITCH_INTERVAL is not enough: a thread that makes a short system call more often than that has the interpreter back
# before the loop has woken up, and the loop's wait starts anew each time (150 ms and more, on two idle cores).
WORKER_SLICE = 0.002
LOOP_TURN_TIMEOUT = 1.0  # seconds that it waits; a loop that ends may never turn again
HINTS_PER_SLICE = 500  # hints handled before the event loop gets its turn
CHARS_PER_SLICE = 8 * KIB  # or so much text of theirs
FIRST_REGEX_BLOCK, REGEX_BLOCK = 32, 512  # hints whose texts a regex searches at once
RANKED_HINTS = 500  # hints with a word of a question; one that more have is common
MAX_COMMON_WORDS = 8  # of a question: the rarest of them; the others find no hints and add no weight
SORTED_GROUP = 500  # hints with a key or a tag that a query sorts; of more it takes the first in the order of all
CHARS_PER_GLOB = 128  # what a glob in a scope counts for, beside what a match of it costs

# Hints in the repository
MAX_REPO_FILE_BYTES = 64 * KIB
MAX_REPO_HINTS = 200  # in one file: short files help agents, long ones hurt
MAX_REPO_FACT_CHARS = 200
MAX_REPO_VALUE_CHARS = 500  # of a command or a path
MAX_REPO_TEXT_CHARS = 2_000  # of any text in the file, beyond which it is not looked at
MAX_REPO_PROBLEMS = 20  # that one refusal names
MAX_EVIDENCE_BYTES = 4 * MIB  # of a file that a hint rests on
MAX_TRUST_BYTES = 32 * MIB  # of the file with what was trusted
MAX_DECISIONS = 5_000  # on hints of all repos together
MAX_VERSIONS_TRUSTED = 8  # of one hint in one clone: its worktrees may be on several branches
REPO_FILES_CACHED = 64
MAX_CLONES_LISTED = 500  # in which a file is looked for

# Scopes and patterns
MAX_PATTERN_CHARS = 256  # a glob or a regex
MAX_SCOPE_ITEMS = 20  # globs, repos, branches, names or allowed values in one scope field
MAX_GLOB_ALTERNATIVES = 64
MAX_GLOB_EXPANDED_CHARS = 2_048  # all alternatives together
MAX_GLOBSTARS = 2  # `**` in one alternative, beside one at its end: each multiplies the time of a match
MAX_GLOB_TEXT_NAMES = 64  # directories of a path, or parts of a branch, that are compared with wildcards
MAX_GLOB_TEXT_CHARS = 512  # the same in characters
MAX_GLOB_COST = 3 * 2 * MAX_GLOB_TEXT_NAMES**2  # of one scope: three patterns such as `**/a/**/b` take 5 ms at worst
MAX_WILD_ALTERNATIVES = 32  # patterns with wildcards in one scope, braces expanded: each takes 0.4 ms to compile
MAX_SCOPE_CHARS = 16 * KIB  # as JSON: thousands of hints keep theirs in memory
GLOBS_CACHED = 1_024  # compiled, in memory
MATCHES_CACHED = 2_048  # answers for a pattern and a text
SCOPES_CACHED = 2_048  # shared by the hints that have them
IDENTITIES_CACHED = 256  # directories and repos that callers name: the same few, again and again
MAX_REGEX_PROGRAM = 400  # RE2 instructions: a search of 8 KiB stays under 20 ms even when its DFA overflows
MAX_REGEX_MEMORY_BYTES = 1 * MIB
MAX_OWN_PATTERNS_BYTES = 32 * MIB  # for the automaton of our own; it grows to a tenth of that
MAX_ENV_VALUE_CHARS = 1_024
MAX_ENV_NAMES = 1_000  # variables that all scopes together name: one call may have to send all of them
MAX_COMMAND_WORDS = 1_000  # of one command, that are tried as names of files to ignore
MAX_PATH_CHARS = 4_096
MAX_REPO_CHARS = 512
MAX_BRANCH_CHARS = 256
MAX_FILES_OPEN = 200
MAX_GIT_FILE_BYTES = 1 * MIB  # of one file below .git that is read for the context

# Processes, in seconds
CONNECT_TIMEOUT = 0.25
CALL_TIMEOUT = 2.0
LOAD_TIMEOUT = 1.0  # that a call waits while its server loads; then it is sent again within CALL_TIMEOUT
LONG_CALL_TIMEOUT = 3_600.0  # a backup, or a purge that rewrites the whole file
SEARCH_TIMEOUT = 1.5  # of a query by regular expression: less than its caller waits
START_TIMEOUT = 10.0
MAX_SETTINGS_BYTES = 1 * MIB  # of config.toml
MAX_DIFFERENCES = 20  # settings that one member reports as different from the server's
MAX_DIFFERENCE_CHARS = 200
START_LOCK_TIMEOUT = 2.0  # after which a start that another process began is not waited for any longer
LEAVE_TIMEOUT = 1.5  # from end of file on PRIMARY's stdin to its exit
SESSION_GRACE = 30 * 86_400.0
HINT_IDLE = 30 * 86_400.0
PREVIOUS_OFFERED = 30 * 86_400.0  # that a miss names the hints of the session before
SEEN_AGAIN = 86_400.0  # between two log records that a hint was read
IDLE_EXIT = 30 * 60.0
HEARTBEAT = 60.0
REQUEST_ID_KEPT = 600.0
MAX_ANSWERS = 5_000  # by request id, for a repeated request; older ones go first
MAX_ANSWER_BYTES = 8 * MIB  # of all of them, as JSON

# The change log
COMPACT_AT_BYTES = 4 * MIB  # and at least COMPACT_RATIO times what the last compaction left
COMPACT_RATIO = 4
MAX_LOG_RECORD_BYTES = 64 * MIB
LOG_PIECE_BYTES = (
    MIB  # written at once while a whole log is written: many short writes would keep the event loop waiting
)

# Recording: what a hook reads, sends and keeps for later
MAX_HOOK_BYTES = 8 * MIB  # of an event that is parsed whole
HOOK_BEGINNING_BYTES = 256 * KIB  # of a longer one, in which the client says what it is about
HOOK_TIMEOUT = 0.1  # seconds for PRIMARY's answer; then the event goes to the spool
MAX_LEARNED_COMMAND = 2_000  # characters of a command that is looked at for what it teaches
MAX_FACTS = 500  # learned facts of one project
MAX_BROKEN_TESTS = 100  # of one project
MAX_EDITED_FILES = 500  # of one session, whose tests are then not taken for broken before it
FACT_SECONDS = 90 * 86_400.0  # after which a fact that was not confirmed is no longer told
TRUSTED_RUN_SECONDS = 14 * 86_400.0  # in which a program that ran with success is taken to be on PATH still
WATCHED_SESSIONS = 200  # whose commands PRIMARY follows to see what worked after a failure
START_CANDIDATES = 100  # facts of most sessions; whether they can be used here is looked up on the disk
MAX_START_FACTS = 3  # learned facts that a session is told at its start
MAX_TOLD_SUPERSEDED = 80  # characters of the title of a note in whose place another is told
MAX_TOLD_COMMAND = 120  # characters of a command that is told whole; a longer one is not told
ANSWERING_HINTS = 20  # variants for one job that are looked at
MAX_TOLD_ERROR = 60
MAX_CAUSES = 24  # lines by which a learned failure is known
MAX_TOLD_CHARS = 240  # of one learned fact: 60 tokens
JUDGED_TELLINGS, SINKING_TELLINGS = 20, 5  # starts at which a line was told; so many without a use let it sink
DEFAULT_TOLD_LISTED, MAX_TOLD_LISTED = 20, 200
STATS_WEEKS = 12
PAST_ACTIONS_READ = 10_000  # of a session, to see whether it had done what it is told: 20 ms
MAX_ROW_DIGITS = 18  # of the number of a row
EDITED_FILES = 5_000  # whose latest edits PRIMARY remembers
PROMPT_LINES, PROMPT_CHARS = 3, 700  # that a prompt is answered with
FILE_LINES = 2  # that the touch of a file is answered with
PROMPT_NOTE_CHARS = 480  # of the note that a prompt is about most
QUESTION_TIMEOUT = 1.0  # seconds for the vector of a question, and to load the model; then words decide alone
PROMPT_QUESTION_TIMEOUT = 0.05  # the same where a hook waits
STORE_QUESTION_TIMEOUT = 0.1  # the same before a note is stored
MAX_CONTRADICTIONS = 8  # notes that a new one may contradict or repeat
MAX_NOTES_COMPARED = 2_000  # with each other, the newest ones
MAX_TEXTS_EMBEDDED = 10_000  # hints whose vectors are in memory
MAX_QUESTION_CHARS = 1_000  # that are embedded of a question
PROMPT_TIMEOUT = 0.05  # seconds to find them
TOLD_WORDS = 5  # of a prompt, that a reason names
INJECT_TIMEOUT = 0.15  # seconds for the context that a session starts with
SESSION_EVENT_BUCKET = 10  # seconds within which two hooks of one client report the same session event
MAX_COMMAND_CHARS = 500
MAX_DURATION_MS = 10**12  # thirty years: more is an error
MAX_PROMPT_CHARS = 2_000
MAX_ERROR_CHARS = 2_000  # head and tail together
MAX_NAMED_SECRET = 1_024  # characters of a value that its field's name, such as `password`, makes a credential
MAX_CAUSE_SEARCHED = 262_144  # characters of an error in which the line with its cause is looked for
MAX_TASK_CHARS = 500  # of the prompt that a subagent gets
TRANSCRIPT_END_BYTES = 128 * KIB  # of a transcript, in which the last words are looked for
MAX_LAST_WORDS = 600  # characters
MAX_LABEL_CHARS = 200  # descriptions, subjects, names
MAX_ARGUMENTS = 20  # of an MCP call
MAX_ARGUMENT_CHARS = 100
MAX_ARGUMENT_IDS = 10  # in a list that is kept whole
MAX_PATCHED_FILES = 100  # named in one patch, as long as they fit into the observation's text
REDACTED_AT_ONCE = 16 * KIB  # characters searched for credentials, of a text that is then cut much shorter
MAX_EVENT_BYTES = 128 * KIB  # one event, as JSON: every field at its longest, in characters of four bytes
MAX_SPOOL_FILES = 10_000
MAX_SPOOL_BYTES = 32 * MIB

# Reading the manifests of a repo
MAX_SCAN_SECONDS = 10
MAX_SCAN_ENTRIES = 500_000  # files and directories that are listed
MAX_MANIFEST_BYTES = 512 * KIB
MAX_MANIFESTS = 200  # files that are read
MAX_MANIFEST_DEPTH = 4  # directories below the root
MAX_MANIFEST_DIRECTORIES = 20_000
MAX_SCANNED_PACKAGES = 20  # the shallow ones; more are counted
MAX_FOUND_COMMAND_CHARS = 500
MAX_FOUND_REASON_CHARS = 400  # file and line: a hint's reason has room for more
MAX_UNREAD_MANIFESTS = 1_000  # named in one scan
MAX_BASIS_FILES = 5  # that one hint rests on
MAX_BASIS_WORDS = 20  # of a hint's command, in which the names of files are looked for
MAX_CREDITED_PROJECTS = 100  # that one hint for everywhere knows; the latest
DIGESTS_CACHED = 1_000  # of files that hints rest on
MAX_WORKFLOW_LINES = 3  # of a CI step; a longer one is a script, not something a person types
MAX_YAML_DEPTH = 64
MAX_YAML_NODES = 50_000  # aliases counted as copies
MAX_MANIFEST_ERROR_CHARS = 120  # of a parser's message
MAX_TOML_KEY_PARTS = 40

# The stdio pipe of PRIMARY's own client
STDIO_UNANSWERED_BYTES = 32 * KIB  # requests that are taken from it at once
STDIO_LINE_COST_BYTES = 2 * KIB  # what a line counts for beside its length
STDIO_UNREAD_BYTES = 8 * MIB  # answers that the client has not taken yet; beyond, its requests wait too

# The private wire
MAX_LINE_BYTES = 4 * MIB  # a payload of MAX_BODY_BYTES, environment values, MCP text beside the structure
MAX_CALLS_IN_FLIGHT = 32  # unanswered on one connection; beyond, it is not read
MAX_UNSENT_BYTES = 4 * MIB  # answers that the other side has not read; beyond, its calls wait
MAX_WIRE_CONNECTIONS = 512  # at most three eighths of the process's descriptors
HELLO_TIMEOUT = 10.0  # seconds that a connection has to say hello
MAX_UNPROVEN_CONNECTIONS = 16  # over TCP, before they have shown that they know the token
PROOF_TIMEOUT = 2.0  # seconds to show it

# The HTTP server
MAX_CONNECTIONS = 512  # at most half of the process's descriptors
MAX_UNAUTHENTICATED_CONNECTIONS = 64  # that have not shown the token; at most a quarter of the descriptors
TOKEN_TIMEOUT = 5.0  # seconds that a connection has to show the token
MAX_HEADERS = 64  # of at most 8 KiB each
BODY_TIMEOUT = 10.0  # seconds for a whole body
KEEPALIVE = 75.0  # seconds that a connection with the token may be idle
MAX_REQUEST_ID_CHARS = 64
MAX_CLIENT_CHARS = 64

# Doctor
LARGE_LOG_BYTES = 512 * MIB  # COMPACT_RATIO times what MAX_HINTS of the largest size take is less
DISK_FULL_BYTES = 16 * MIB
DISK_LOW_BYTES = 256 * MIB
CLOCK_STEP_REPORTED = 60.0  # seconds
EARLIEST_CLOCK = 1_767_225_600  # 2026-01-01: an earlier clock was never set

# The history: observations in the database
BUSY_TIMEOUT = 5.0  # seconds that a write waits for another process's transaction
OFFLINE_READ_TIMEOUT = (
    0.1  # the same for a hook that reads the database itself, and seconds of processor time for all it reads
)
OFFLINE_READ_WAIT = 0.4  # seconds by the clock for the same
READ_TIMEOUT = 1.8  # seconds of one query: a caller waits CALL_TIMEOUT
WRITER_CACHE_BYTES = 16 * MIB  # with less, every insert into a large history reads its index pages again
READER_CACHE_BYTES = 8 * MIB
INDEX_SEGMENTS = 4  # of the index of notes; more are merged
READERS = 2  # threads, each with a connection
MAX_WRITES_PER_COMMIT = 500
VACUUM_BYTES = 256 * MIB  # a larger database is not rewritten whole after a purge
DEDUPLICATION_WINDOW = 300  # seconds
SILENT_SESSION = 12 * 3_600  # seconds without an event after which a session counts as ended
MAX_EVENT_ID_CHARS = 128
MAX_SESSION_ID_CHARS = 256
MAX_EVENT_FIELD_CHARS = 4_096  # paths, names; the rest of a longer one is cut
MAX_CONTENT_CHARS = 4_096
MAX_METADATA_CHARS = 16 * KIB  # as JSON
PREVIEW_CHARS = 120
MAX_CLONES_SEARCHED = 200  # clones and worktrees of a project in which a file's history is looked for
INTENT_CHARS = 200
MAX_SUMMARY_ITEMS = 20  # files, failures or commits that one summary names
QUESTION_WORDS = 4  # from which on a search is a question
MAX_QUESTION_WORDS = 64  # of which any may match
RANKED_PARTIAL = 5_000  # newest observations with some words of a question that are ranked
DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 20, 100
MAX_SEARCH_CHARS = 1_000
MAX_SEARCH_DEPTH = 16  # nested parentheses
MAX_SEARCH_OFFSET = 100_000
BLENDED_CANDIDATES = 500  # best matches, and as many newest ones, that `blended` ranks together
MAX_OBSERVATION_IDS = 50
DEFAULT_TIMELINE, MAX_TIMELINE = 5, 500
DEFAULT_RECENT_LIMIT, MAX_RECENT_LIMIT = 30, 100
DEFAULT_HISTORY_LIMIT, MAX_HISTORY_LIMIT = 10, 50
DEFAULT_TRACE_LIMIT, MAX_TRACE_LIMIT = 200, 2_000  # prompts and observations of one session
DEFAULT_SESSIONS_LIMIT, MAX_SESSIONS_LIMIT = 20, 100
EXPORT_PAGE = 500  # rows
MAX_PURGED_IDS = 1_000  # named in one purge
SPOOL_WAIT = 0.5  # seconds that a read of the history waits after a start for events in the spool
FIRST_SWEEP = 300.0  # seconds after a PRIMARY's start, before which retention deletes nothing
SWEEP_PORTION = 2_000  # rows deleted in one transaction
MAX_RETENTION_DAYS = 36_500

# Notes
MAX_NOTE_ID = 10**18 - 1
MAX_TITLE_BYTES = 512
FOREIGN_READ_TIMEOUT = 2.0  # seconds of one statement that reads somebody else's database: it may block other writes
RESTORE_READ_TIMEOUT = 300.0  # seconds of one statement that checks a backup; no server waits for it
LONGEST_FOREIGN_VALUE = MIB  # of a value in somebody else's database
MAX_NOTE_BYTES = 64 * KIB  # of the content
MAX_NAMESPACE_BYTES = 512
MAX_NOTE_TAGS = 50
MAX_NOTE_TAG_BYTES = 128
MAX_NOTE_FILES, MAX_NOTE_FILE_BYTES = 20, 512  # that one note is given
CHANGED_FILES, CHANGED_SECONDS = 5, 900  # the last that a session changed before it stored a note; since when
CHANGED_FILES, CHANGED_SECONDS = 5, 900  # that a session changed last before it stored a note; within this time
MAX_NAMED_FILES = 50  # paths in a note's text by which it is found
MAX_METADATA_BYTES = 16 * KIB  # as JSON
MAX_NOTE_TTL = 365 * 86_400  # seconds
SHORT_NOTE_TTL, MID_NOTE_TTL = 6 * 3_600.0, 7 * 86_400.0  # seconds; a `long` note is kept for good
SHORT_NOTE_EXTENSION, MID_NOTE_EXTENSION = 3_600.0, 86_400.0  # seconds that a recall adds
PROMOTION_RECALLS = 5  # that make a `mid` note `long`
EXPIRING_SOON = 86_400.0  # seconds
DEFAULT_RECALL_LIMIT, MAX_NOTES_LISTED = 10, 200
MAX_EXPLAINED_IDS = 200  # notes that one explanation names
MAX_EXPLAINED_NAMES = 20  # hints that one call explains
MAX_INJECTED_SESSIONS = 20  # sessions that an explanation lists
MAX_BUDGET_TOKENS = 1_000_000
MAX_BULK_NOTES = 1_000
MAX_MINED_FILE_BYTES = 1_024 * MIB  # of one file that a chat program exported
FORGOTTEN_SHOWN = 20  # notes that `forget` and `auto_consolidate` name
MAX_FORGOTTEN_IDS = 1_000  # notes that are archived by their ids
MAX_CONSOLIDATED = 100  # notes in one consolidation
SWEPT_NOTES = 500  # expired notes that one transaction moves to the archive

# A language model
MODEL_TIMEOUT = 5.0  # seconds for one request
MODEL_WAIT = 5.0  # seconds that a question waits for the one before it
MODEL_FAILURES, MODEL_REST = 3, 60.0  # failures in a row, after which it is left alone for so many seconds
MAX_MODEL_ANSWER_BYTES = 128 * KIB
MODEL_ANSWER_TOKENS = 512
MODEL_TEXT_CHARS = 4_000  # of one note
MODEL_TITLE_CHARS = 160
MAX_MODEL_URL_CHARS, MAX_MODEL_NAME_CHARS = 500, 200
EXPANSION_WAIT = 1.0  # seconds that a recall waits for more words, of its CALL_TIMEOUT
EXPANDED_WORDS = 8
KEPT_EXPANSIONS = 200  # queries
MAX_PROPOSED_CHARS = 40  # of a word or a tag
PROPOSED_TAGS = 5
PROPOSED_PAIRS = 3  # notes with which a new one is compared
PROPOSED_GROUPS, LEAST_PROPOSED_GROUP = 5, 3
GROUPED_TITLES = 40  # in one question
EXAMINED_FOR = 86_400.0  # seconds after a note was stored in which something is proposed for it without being asked
EXAMINED_AT_ONCE = 5
QUIET_SECONDS = 60.0  # without a call, after which groups are looked for
MAX_PROPOSALS_LISTED = 200

# The journal
MAX_ATTEMPT_TEXT_BYTES = 1_000  # of a hypothesis, an action, a prediction, a note, a cause, a lesson
MAX_RESULT_BYTES = 2_000  # of a result, and of a surprise
ITERATIONS_SHOWN = 5  # the latest of an attempt that an agent is at
DEFAULT_ATTEMPTS_LISTED, MAX_ATTEMPTS_LISTED = 20, 100
ORPHANED_AFTER = 30 * 60.0  # seconds without a sign of the session that owns an open attempt
CHECK_IN_ACTIONS = 10  # without an update, after which an agent is reminded of its attempt
CALLED_COUNT_SECONDS = 30 * 86_400  # for which the count of a session's calls is kept

# Wiring clients
CLIENT_HOOK_TIMEOUT = 5  # seconds that a client gives one hook
CLIENT_SESSION_END_TIMEOUT = 3  # clients give no more when they end
STATUS_LINE_INTERVAL = 10  # seconds after which a client that is idle asks again; it also does after each message
CLIENT_COMMAND_TIMEOUT = 30.0  # seconds for a client's own command, such as `claude mcp add`
MAX_CONFIG_BYTES = 32 * MIB  # of one configuration file of a client

# The injection: the text that a session gets at its start
MAX_INJECTION_CHARS = 9_500  # clients move a longer one into a file and show 2 KB of it
INJECTED_HINTS = 10
MAX_INSTRUCTION_FILES = 16  # that a client reads by itself, with those that they import
MAX_INSTRUCTION_BYTES = 65_536  # of each
INJECTED_NOTES = 2
INJECTED_LIVE = 5  # sessions that are at work in the repo
INJECTED_SESSIONS = 3  # that ended
INJECTED_ELSEWHERE = 1  # of them, that were on another branch
INJECTED_INTENTS = 8  # prompts of the session itself, when it goes on
INJECTED_TEXT_CHARS = 56  # of a path
INJECTED_INTENT_CHARS = 100
INJECTED_LIVE_CHARS = 60  # of the intent of a session that is at work
INJECTED_GOAL_CHARS = 80  # of an attempt
INJECTED_ERROR_CHARS = 100  # of the line that names the cause of a failure
INJECTED_SUBJECT_CHARS = 80  # of a commit
INJECTED_NOTE_CHARS = 160
INJECTED_UNFINISHED_CHARS = 400  # of the last words of a session that left something failing or uncommitted
INJECTED_VALUE_CHARS = 160  # of a hint; a longer one is told by the command that prints it
INJECTED_REASON_CHARS = 100
INJECTED_NAME_CHARS = 48
LIVE_SECONDS = 30 * 60  # since its last event, in which a session without an end counts as live
PROMPTED_SECONDS = 120  # since its prompt, in which a session counts as at work before it acts
TOLD_SESSION_SECONDS = 30 * 86_400  # older sessions are not told
TOLD_SESSIONS_READ = 12  # the newest of a project
TOLD_PROMPTS_READ = 30  # the newest of a session
TOLD_COMMANDS_READ = 100
TOLD_ROWS_READ = 1_000
TOLD_FILES = 8
NAMED_FILES = 3  # of a session that is told
INJECTION_VARIANTS = 30  # hints queried for: of several variants only the best is injected
OFFLINE_LOG_BYTES = COMPACT_AT_BYTES  # of a change log that a hook reads itself; a longer one takes too long
OFFLINE_HINTS = 1_000  # the newest that may be eligible

# Recording
MAX_EVENTS_AT_ONCE = 500  # in one `record_many`

# Reading the transcripts that a client keeps
MAX_TRANSCRIPT_LINE_BYTES = 64 * MIB  # a longer line, such as one with images, is skipped
MAX_CALLS_OPEN = 1_000  # tool calls of one transcript that wait for their result
BACKFILL_EVENTS = 100  # in one call: behind more, a hook would wait too long for its answer
BACKFILL_BYTES = 512 * KIB  # of events in one call; with one event more it stays below MAX_BODY_BYTES

# The page
UNDO_KEPT = 60.0  # seconds for which a note that was deleted can be restored, if whoever deleted it asked for that
PAGE_CODE_SECONDS = 60  # in which a one-time code can be traded
PAGE_SECRET_SECONDS = 12 * 3_600  # without use, after which a secret ends
PAGE_SECRET_NOTED = 600  # seconds between two times that the use of a secret is written down
MAX_PAGE_SECRETS = 32  # tabs that are signed in; for another one the tab that was idle longest is signed out
MAX_ROW_ID = 2**62
STREAM_ROWS = 500  # of one message to a page
STREAM_PREVIEW_CHARS = 300
STREAM_POLL = 1.0  # seconds: what hooks wrote while no server ran is stored without a call
STREAM_PAUSE = 0.1  # seconds between two messages: what comes faster goes together
STREAM_BEAT = 15.0  # seconds between two signs of life
STREAM_WRITE = 10.0  # seconds that a page may take to read a message
FACET_SECONDS = 1.0  # for counts by facet; then the page says that they are not of everything
DOCTOR_TIMEOUT = 30.0  # seconds for the checks that the page asks for

# A team's shared log.
TEAM_CLOCK_AHEAD = 300.0  # seconds that a clock may be ahead of the server's
TEAM_CLOCK_STEP = 60.0  # seconds that a clock is corrected by without being a clock that was set
TEAM_URL_CHARS = 2_000
TEAM_KEY_BYTES = 4 * KIB  # of the title of a note, or the names and the scope of a hint
TEAM_BODY_BYTES = 128 * KIB  # of a change; a note of the largest size, escaped, is below
TEAM_WAIT = 1.5  # seconds for one answer of the server
TEAM_ROWS = 500  # that are asked for, or sent, at once; halved when they take too long
TEAM_ROWS_BYTES = 2 * MIB  # that are sent at once
# Seconds of one transaction that stores rows: while a hook waits for the same writer, and while nobody does. A commit
# writes a piece of the index, which is merged with others later.
TEAM_WRITE_SLICE, TEAM_WRITE_MOST = 0.03, 0.3
TEAM_POLL, TEAM_IDLE_POLL = 300.0, 900.0  # seconds between two looks without a notification; while agents work, else
TEAM_IDLE = 600.0  # seconds without a call after which no agent works; then no connection is kept
TEAM_RETRY, TEAM_RETRY_MOST = 5.0, 300.0  # seconds after a failure, doubled each time
TEAM_BURST = 1.0  # seconds that changes are gathered before they are sent, and between two notifications
TEAM_CONFLICTS = 20  # versions that lost and are kept, of one hint or note
TEAM_SHARED_REPOS = 200

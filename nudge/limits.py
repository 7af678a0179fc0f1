"""Every limit, with its unit. A number that bounds anything lives here and nowhere else."""

KIB = 1024
MIB = 1024 * KIB

# The wire
MAX_BODY_BYTES = 1 * MIB
MAX_IMPORT_BODY_BYTES = 16 * MIB
MAX_STDIO_LINE_BYTES = 1 * MIB
MAX_JSON_DEPTH = 64
MAX_BATCH = 100
MAX_INTEGER_DIGITS = 30
MAX_NUMBER_CHARS = 1_000  # of a number with a fraction or an exponent
MAX_JSON_SEPARATORS = 2_000_000  # commas and opening brackets in one message
MAX_JSON_MEMBERS = 100_000  # of one object or array in a large message
SMALL_JSON_BYTES = 64 * KIB  # what the event loop itself parses; larger messages go to a worker thread
DEFAULT_PORT = 8765
PORTS_TRIED = 100

# Hints
MAX_VALUE_BYTES = 8 * KIB
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
MAX_BUMP = 1_000
MAX_TTL_SECONDS = 366 * 86_400
DEFAULT_QUERY_LIMIT = 10
MAX_QUERY_LIMIT = 100
MAX_SCANNED = 500  # commands in one scan; reconciling them is one step on the event loop
MAX_REASONS = 12  # in one explanation
MAX_WHY_NOT = 20  # variants that one miss explains
MAX_KNOWN_KEYS = 10  # keys that one miss suggests
MAX_QUERY_ITEMS = 100  # keys or tags in one query
MAX_USE_COUNT = 1_000_000_000
MAX_VERSION = 2**53 - 1  # the largest whole number that every JSON reader keeps exact
MAX_TIMESTAMP = 7_258_118_400  # 2200-01-01: until then a float tells microseconds apart
MAX_IMPORT_REASONS = 100  # skipped hints that one import explains
HINTS_PER_BREATH = 100  # hints handled before the event loop gets its turn
CHARS_PER_BREATH = 8 * KIB  # or so much text of theirs

# Scopes and patterns
MAX_PATTERN_CHARS = 256  # a glob or a regex
MAX_SCOPE_ITEMS = 20  # globs, repos, branches, names or allowed values in one scope field
MAX_GLOB_ALTERNATIVES = 64
MAX_GLOB_EXPANDED_CHARS = 2_048  # all alternatives together
MAX_GLOB_WILDCARDS = 64  # in all alternatives together: a match of the longest path stays under 5 ms
GLOBS_CACHED = 2_048  # compiled, in memory
SCOPES_CACHED = 2_048  # shared by the hints that have them
MAX_REGEX_PROGRAM = 400  # RE2 instructions: a search of 8 KiB stays under 20 ms even when its DFA overflows
MAX_GLOB_MEMORY_BYTES = 256 * KIB  # of RE2, for one pattern
MAX_REGEX_MEMORY_BYTES = 1 * MIB
MAX_ENV_VALUE_CHARS = 1_024
MAX_PATH_CHARS = 4_096
MAX_REPO_CHARS = 512
MAX_BRANCH_CHARS = 256
MAX_FILES_OPEN = 200
MAX_GIT_FILE_BYTES = 1 * MIB  # of one file below .git that is read for the context

# Processes, in seconds
CONNECT_TIMEOUT = 0.25
CALL_TIMEOUT = 2.0
START_TIMEOUT = 10.0
LEAVE_TIMEOUT = 1.5  # from end of file on PRIMARY's stdin to its exit
SESSION_GRACE = 12 * 3_600.0
IDLE_EXIT = 30 * 60.0
HEARTBEAT = 60.0
REQUEST_ID_KEPT = 600.0

# The change log
COMPACT_AT_BYTES = 4 * MIB  # and at least COMPACT_RATIO times what the last compaction left
COMPACT_RATIO = 4
MAX_LOG_RECORD_BYTES = 64 * MIB
LOG_PIECE_BYTES = 32 * KIB  # written at once while a whole log is written

# Reading the manifests of a repo
MAX_MANIFEST_BYTES = 512 * KIB
MAX_MANIFESTS = 200
MAX_MANIFEST_DEPTH = 4  # directories below the root
MAX_MANIFEST_DIRECTORIES = 20_000
MAX_FOUND_COMMANDS = 1_000
MAX_FOUND_COMMAND_CHARS = 500
MAX_WORKFLOW_LINES = 3  # of a CI step; a longer one is a script, not something a person types
MAX_YAML_DEPTH = 64
MAX_TOML_KEY_PARTS = 40

# The HTTP listener
MAX_CONNECTIONS = 512  # on TCP
MAX_HEADER_BYTES = 32 * KIB  # one header: a context with a long directory fits
HEADERS_TIMEOUT = 10.0  # seconds to the first complete request of a connection
BODY_TIMEOUT = 10.0
KEEPALIVE = 75.0  # on TCP; a member's connection stays open as long as it likes
MAX_REQUEST_ID_CHARS = 64
MAX_CLIENT_CHARS = 64

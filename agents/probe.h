/* Running an agent's program for an answer and nothing else: its version, its help, what it needs.
 *
 * Every call ends in bounded time, with nothing left running, and keeps a bounded part of what was printed. Nothing is
 * spent: the arguments are an adapter's own for that purpose. Blocking. */
#ifndef EPG_AGENTS_PROBE_H
#define EPG_AGENTS_PROBE_H

#include <stdbool.h>

#include "agents/adapter.h"
#include "agents/invocation.h"
#include "base/buffer.h"
#include "base/error.h"

enum { EPG_PROBE_SECONDS = 30, EPG_PROBE_OUTPUT = 1024 * 1024 };

/* Runs `argv` (its first looked up in `path`) with stdin empty; `output` gets stdout and stderr. TIMEOUT after
 * EPG_PROBE_SECONDS; NOT_FOUND, IO when it can't be started. */
epg_code epg_probe_run(const char *const *argv, const char *const *environment, const char *path, int *exit_code,
                       epg_buffer *output, epg_error *err);

/* Where the executable of an adapter is: an absolute path, or NULL. Caller frees. `why` (may be NULL) gets a line that
 * tells what is wrong: not found, not executable. */
char *epg_probe_find(const epg_adapter *adapter, const char *executable, const char *path, char **why);

/* The version that the executable tells. UNAVAILABLE: it does not start, or tells none that the adapter's pattern
 * finds. */
epg_code epg_probe_version(const epg_adapter *adapter, const char *executable, char *const *environment, char **out,
                           epg_error *err);
/* Is this version among those that the adapter was tested with? */
bool epg_probe_tested(const epg_adapter *adapter, const char *version);

typedef enum epg_check_state { EPG_CHECK_GOOD, EPG_CHECK_NOTE, EPG_CHECK_MISSING } epg_check_state;

/* One thing that was looked at. */
typedef struct epg_check_line {
    epg_check_state state;
    char *what; /* "executable", "version", "login", ... */
    char *text;
} epg_check_line;

typedef struct epg_check_report {
    char *executable;
    char *version;
    epg_check_line *lines;
    size_t count;
    bool ready; /* nothing is missing */
} epg_check_report;
void epg_check_report_free(epg_check_report *report);

/* Looks at everything that a Run with this request would need: executable, version, runtime, options, login, root, and
 * whether the CLI's own help knows the options that would be used. `login_directory`: --agent-home, or NULL. Without a
 * private home in the request the user's own is taken. */
void epg_agent_check(const epg_agent_request *request, const char *login_directory, epg_check_report *out);

#endif

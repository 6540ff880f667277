/* Adapters: what the Host knows of one agent CLI, as data.
 *
 * One JSON document an agent, schema `evopolicygym/agent-adapter/v1` (docs/adapters.md teaches it). Loading is strict:
 * an unknown key, a wrong type, a pattern that does not compile, a placeholder that names nothing is refused with one
 * line that names the file and the place. Built-in adapters lie beside the installed program or in the source tree; a
 * user's own lie in $XDG_CONFIG_HOME/evopolicygym/agents/ (~/.config/...) and go before built-in ones of the same name.
 */
#ifndef EPG_AGENTS_ADAPTER_H
#define EPG_AGENTS_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json.h"

#define EPG_ADAPTER_SCHEMA "evopolicygym/agent-adapter/v1"
enum { EPG_ADAPTER_BYTES_MAX = 1024 * 1024, EPG_MODEL_MAX = 128, EPG_EFFORT_MAX = 64, EPG_EXECUTABLE_MAX = 4096 };

/* The checked document. The accessors below cover what callers need; invocation.c and transcript.c read the rest. */
typedef struct epg_adapter {
    char *name;
    char *path; /* where it was read from */
    bool built_in;
    json_t *document;
} epg_adapter;
void epg_adapter_free(epg_adapter *adapter);
#define EPG_AUTO_ADAPTER EPG_CLEANUP(epg_adapter_free) epg_adapter

/* Finds the adapter called `name`. USAGE, with the names there are, when there is none. */
epg_code epg_adapter_find(const char *name, epg_adapter *out, epg_error *err);
/* Reads one file (--agent-file). */
epg_code epg_adapter_read(const char *path, epg_adapter *out, epg_error *err);
/* Checks a document that was read; `what` names it in errors. Borrows `document`. */
epg_code epg_adapter_check(const json_t *document, const char *what, epg_error *err);

/* Every adapter that can be found, sorted by name, the user's before built-in ones of the same name. A user's file that
 * can't be loaded is listed with its error. */
typedef struct epg_adapter_entry {
    epg_adapter adapter;
    epg_error error; /* code EPG_OK when the adapter is sound */
} epg_adapter_entry;
epg_code epg_adapter_list(epg_adapter_entry **out, size_t *count, epg_error *err);
void epg_adapter_list_free(epg_adapter_entry *entries, size_t count);

const char *epg_adapter_title(const epg_adapter *adapter);
/* True when the adapter can run with a home of the Run's own. */
bool epg_adapter_private_home(const epg_adapter *adapter);
/* The option's object in the document, or NULL. */
const json_t *epg_adapter_option(const epg_adapter *adapter, const char *name);

/* Directories that are searched, in order; NULL where there is none. Caller frees. */
char *epg_adapter_user_directory(void);
char *epg_adapter_built_in_directory(void);

#endif

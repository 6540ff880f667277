/* Growing NULL-terminated arrays of owned texts: argv and environments. Inside the agents room only. */
#ifndef EPG_AGENTS_NAMES_H
#define EPG_AGENTS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "agents/invocation.h"

typedef struct epg_names {
    char **texts; /* NULL while empty */
    size_t count;
} epg_names;

void epg_names_add(epg_names *names, const char *text); /* copies */
void epg_names_take(epg_names *names, char *text);      /* takes ownership */
bool epg_names_hold(const epg_names *names, const char *text);
char **epg_names_give(epg_names *names); /* never NULL; the names are empty after */
void epg_names_free(epg_names *names);
#define EPG_AUTO_NAMES EPG_CLEANUP(epg_names_free) epg_names

/* The value of `name` in an environment, NULL when it is not set. */
const char *epg_environment_get(char *const *environment, const char *name);

/* What an invocation is built from, once options and the way of the task are settled. */
typedef struct epg_build {
    const epg_agent_request *request;
    epg_task_way way;
    const char *instructions; /* what `{instructions}` stands for: the text, or its recorded form */
    char *instructions_file;
    char *keep_from_tools; /* a JSON list */
} epg_build;

/* epg_lookup over a build. */
const char *epg_build_lookup(void *context, const char *name);

/* Fills environment, fixed_names, inherit_names and secrets of the invocation. */
epg_code epg_build_environment(epg_build *build, epg_invocation *out, epg_error *err);
/* Fills home_files and login_paths. */
epg_code epg_build_home(epg_build *build, epg_invocation *out, epg_error *err);

#endif

/* Invocation: an adapter (or the user's own command) and the user's options become exactly what is started.
 *
 * Nothing is created here: the result says which files are to be written, and the Run writes them. Secrets stand in the
 * environment that the Agent gets, never in what is recorded: the record has names of variables, and the task text
 * in an argument is recorded as `@agent/instructions.md`.
 *
 * Placeholders in an argument: `{instructions}` the task text; `{instructions_file}` the absolute path of a copy of
 * it in the workspace; `{workspace}`. In a user's own command nothing else is replaced; an adapter knows more. */
#ifndef EPG_AGENTS_INVOCATION_H
#define EPG_AGENTS_INVOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "agents/adapter.h"
#include "agents/redaction.h"
#include "base/buffer.h"
#include "base/error.h"

#define EPG_RECORDED_INSTRUCTIONS "@agent/instructions.md"
#define EPG_TASK_FILE "instructions.md" /* in the workspace, where the task goes by a file */

typedef struct epg_pair {
    char *name;
    char *value;
} epg_pair;

/* How the task text reaches the Agent. */
typedef enum epg_task_way { EPG_TASK_AUTO, EPG_TASK_ARGUMENT, EPG_TASK_STDIN, EPG_TASK_FILE_WAY } epg_task_way;

const char *epg_task_way_name(epg_task_way way); /* "auto", "argument", "stdin", "file" */
bool epg_task_way_parse(const char *name, epg_task_way *out);

/* What the caller knows. Everything is borrowed. */
typedef struct epg_agent_request {
    const epg_adapter *adapter; /* NULL: the user's own command */
    const char *const *command; /* own command: its argv, at least one; with an adapter: arguments added at its end */
    size_t command_count;
    const epg_pair *options; /* --model, --effort, --agent-option NAME=VALUE */
    size_t option_count;
    const char *executable;     /* instead of the adapter's own; NULL */
    const char *resume;         /* the session id of the agent's own to go on with; NULL: a new one */
    const char *version;        /* what the version probe said; NULL: not known, taken as the newest tested one */
    epg_task_way task_way;      /* AUTO: own command: ARGUMENT when `{instructions}` stands in it, else FILE */
    const char *instructions;   /* the task text */
    const char *workspace;      /* absolute; need not exist yet */
    const char *home;           /* absolute path of the Run's private home; NULL: the user's own home */
    const char *const *inherit; /* further names of variables to inherit */
    size_t inherit_count;
    const char *const *secret; /* further names of inherited variables whose values are secret */
    size_t secret_count;
    char *const *environment; /* the Host's own, NAME=value, NULL-terminated */
    bool root;                /* the Agent will run as root */
} epg_agent_request;

/* A file of the private home, relative to it. A path that ends in '/' is a directory. */
typedef struct epg_home_file {
    char *path;
    epg_buffer content;
} epg_home_file;

typedef struct epg_invocation {
    char **argv; /* NULL-terminated; argv[0] is looked up in PATH when it has no '/' */
    char **recorded_argv;
    char **environment;   /* NAME=value, NULL-terminated: inherited and set, without what the Host owns */
    char **fixed_names;   /* recorded: what the Host and the adapter set, NULL-terminated */
    char **inherit_names; /* recorded: the allow-list */
    epg_pair *identity;   /* provider, model, ...: sorted by name */
    size_t identity_count;
    char *stdout_media_type;
    epg_task_way task_way; /* never AUTO */
    epg_home_file *home_files;
    size_t home_file_count;
    char **login_paths; /* paths below --agent-home to bring into the private home, where they exist; NULL-terminated */
    char **secrets;     /* values to redact, NULL-terminated */
} epg_invocation;
void epg_invocation_free(epg_invocation *invocation);
#define EPG_AUTO_INVOCATION EPG_CLEANUP(epg_invocation_free) epg_invocation

/* USAGE: an option that is unknown, missing or malformed, or a task text too long for every way it could go. Whether
 * the executable and a login are there is not looked at here (agents/check.h). */
epg_code epg_invocation_build(const epg_agent_request *request, epg_invocation *out, epg_error *err);

/* The whole environment of the Agent: the invocation's and what the Host owns. `session_directory` (the directory of
 * the session client) goes first in PATH. NULL-terminated; free with epg_texts_free. */
char **epg_invocation_environment(const epg_invocation *invocation, const char *path, const char *session_directory,
                                  const char *session_socket, const char *workspace);
void epg_texts_free(char **texts); /* NULL is fine */

/* agent/invocation.json (`evopolicygym/agent-invocation/v1`), redacted. */
epg_code epg_invocation_write(const epg_invocation *invocation, const epg_redactor *redactor, epg_buffer *out,
                              epg_error *err);

/* A redactor for everything that is kept of this Agent: its secrets, the adapter's patterns, known keys. */
epg_code epg_invocation_redactor(const epg_invocation *invocation, const epg_adapter *adapter, epg_redactor **out,
                                 epg_error *err);

/* Adds what looks like a token in the files of a login (NULL: none) to the invocation's secrets. */
epg_code epg_invocation_login_secrets(epg_invocation *invocation, const char *login_directory, epg_error *err);

/* Lays the private home out below the open directory `home` (which exists and is empty): the files, then the login
 * brought in from `login_directory` (NULL: none), copied with mode 0600 and without following links. */
epg_code epg_invocation_lay_home(const epg_invocation *invocation, int home, const char *login_directory,
                                 epg_error *err);

#endif

/* The options that choose an agent and what it is told: shared by `run`, `resume` and `agent`. */
#ifndef EPG_CLI_AGENT_OPTIONS_H
#define EPG_CLI_AGENT_OPTIONS_H

#include "agents/invocation.h"
#include "base/options.h"

#define EPG_CLI_AGENT_OPTIONS                                                                                          \
    {.name = "model",                                                                                                  \
     .short_name = 'm',                                                                                                \
     .kind = EPG_OPTION_VALUE,                                                                                         \
     .value_name = "MODEL",                                                                                            \
     .help = "the model to use (of a command of your own: recorded only)"},                                            \
        {.name = "effort", .kind = EPG_OPTION_VALUE, .value_name = "LEVEL", .help = "how hard the model is to think"}, \
        {.name = "agent-option",                                                                                       \
         .kind = EPG_OPTION_LIST,                                                                                      \
         .value_name = "NAME=VALUE",                                                                                   \
         .help = "another option of the Agent's ('evopolicygym agent show NAME' lists them); repeatable"},             \
        {.name = "agent-file",                                                                                         \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "FILE",                                                                                         \
         .help = "an Agent described in a file of your own (docs/adapters.md)"},                                       \
        {.name = "agent-executable",                                                                                   \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "PATH",                                                                                         \
         .help = "the Agent's program, where it is not in PATH"},                                                      \
        {.name = "agent-task",                                                                                         \
         .kind = EPG_OPTION_VALUE,                                                                                     \
         .value_name = "WAY",                                                                                          \
         .help = "how the task reaches the Agent: argument, stdin or file (default: as the Agent can)"},               \
    {                                                                                                                  \
        .name = "agent-home", .kind = EPG_OPTION_VALUE, .value_name = "DIR",                                           \
        .help = "a home directory whose login of the Agent is copied into the Run's private one; 'shared': no "        \
                "private home, the Agent uses your own"                                                                \
    }

/* Owned; zeroed is empty. */
typedef struct epg_cli_agent {
    epg_adapter adapter; /* document NULL: the user's own command */
    epg_pair *options;
    size_t option_count;
    char *executable;      /* --agent-executable; NULL: the adapter's own */
    char *login_directory; /* --agent-home, absolute; NULL: none */
    char *version;         /* what the program says of itself; NULL: not asked, or it tells none */
    char **command;        /* the user's own, NULL-terminated, set by who has it; NULL: none */
    bool private_home;
    epg_task_way task_way;
    epg_agent_request request; /* for the caller's own use */
} epg_cli_agent;

/* Reads the options above. `name`: --agent, an operand, or NULL (then --agent-file, else the user's own command). */
epg_code epg_cli_agent_read(const epg_options *options, const char *name, epg_cli_agent *out, epg_error *err);
/* Finds the agent's program and asks for its version. USAGE when it is not there. */
epg_code epg_cli_agent_look(epg_cli_agent *agent, epg_error *err);
void epg_cli_agent_free(epg_cli_agent *agent);
bool epg_cli_agent_has(const epg_cli_agent *agent, const char *option);
void epg_cli_agent_add(epg_cli_agent *agent, const char *option, const char *value);
/* Puts adapter, options, executable and the Host's environment into a request; the rest of it is left as it is. */
void epg_cli_agent_request(const epg_cli_agent *agent, epg_agent_request *request);

#endif

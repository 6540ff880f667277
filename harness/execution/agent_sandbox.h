/* An Agent in the sandbox: it sees its workspace, its own command's installation, a private home and the session's
 * socket; nothing else of the Host's files, none of its processes, and of the network what the user chose.
 *
 * Use: fill epg_agent_sandbox; epg_agent_box_open; hand epg_agent_box_spawn to epg_owned_start; then
 * epg_agent_box_started, which tells a sandbox that could not be made (EXECUTION) from a command that ran; after the
 * tree is gone, epg_agent_box_close. Everything keeps the absolute path that it has on the Host, so texts, sockets and
 * configuration files mean the same on both sides.
 *
 * When we are root the Agent runs as an unprivileged user of its own. What it may write is shown to it as its own
 * (an id-mapped mount), and stays root's on disk; where a file system can't do that, it is given to the Agent's user
 * for as long as the box is open. */
#ifndef EPG_EXECUTION_AGENT_SANDBOX_H
#define EPG_EXECUTION_AGENT_SANDBOX_H

#include "base/json.h"
#include "execution/execution.h"

typedef enum epg_network_kind { EPG_NETWORK_NONE, EPG_NETWORK_HOST, EPG_NETWORK_PROXY } epg_network_kind;

/* `none`, `host`, or `proxy=HOST:PORT`: the one address that the Agent can reach, at 127.0.0.1:PORT of its own network
 * (HTTP_PROXY, HTTPS_PROXY and ALL_PROXY name it in its environment). */
typedef struct epg_network {
    epg_network_kind kind;
    char host[256];
    uint16_t port;
} epg_network;
epg_code epg_network_parse(const char *text, epg_network *out, epg_error *err); /* USAGE */
char *epg_network_text(const epg_network *network);                             /* as it was given; caller frees */

extern const epg_guest_limits epg_agent_default_limits;

/* All paths absolute, all lists NULL-terminated, everything borrowed until the box is closed. */
typedef struct epg_agent_sandbox {
    const char *workspace;        /* its working directory; read-only but for: */
    const char *const *writable;  /* names of directories in it that the Agent may write: "program", "analysis" */
    const char *home;             /* its private home, writable; NULL: none */
    const char *session_socket;   /* NULL: none */
    const char *const *read_only; /* further files and directories: the session client, interpreters; a path that
                                   * is not there is passed over */
    epg_network network;
    epg_guest_limits limits;        /* log_bytes counts for nothing here */
    const char *const *argv;        /* argv[0] is looked up in `search_path` when it has no '/' */
    const char *const *environment; /* NAME=value */
    const char *search_path;
    const epg_fd_map *fds; /* its descriptors below 10; 0, 1 and 2 are /dev/null unless mapped */
    size_t fd_count;
} epg_agent_sandbox;

typedef struct epg_agent_box epg_agent_box;

/* NOT_FOUND: the command is not there. UNAVAILABLE: no sandbox on this machine. USAGE: a path that may not be shown. */
epg_code epg_agent_box_open(const epg_agent_sandbox *what, epg_agent_box **out, epg_error *err);
const epg_spawn *epg_agent_box_spawn(const epg_agent_box *box);
/* After epg_owned_start: waits until the command itself runs inside, or tells which step failed (EXECUTION; NOT_FOUND
 * when the command can't be started there). */
epg_code epg_agent_box_started(epg_agent_box *box, int64_t deadline, epg_error *err);
void epg_agent_box_close(epg_agent_box *box); /* NULL is fine */

/* The limit that ended the Agent or stood in its way ("memory", "processes", "cpu", "seccomp"), or NULL; static text.
 * Asked after its tree is gone and before the box is closed. */
const char *epg_agent_box_ended_by(const epg_agent_box *box, const epg_exit *exit);

/* How many processes lived in the sandbox when the Agent itself had ended, all of which ended then. False: the sandbox
 * was ended before. Asked once, after its tree is gone. */
bool epg_agent_box_left(const epg_agent_box *box, unsigned *count);

/* What holds for the Agent, for the Run's record: an object with profile, contained, network, limits (each with its
 * means, as in epg_execution_describe) and `degraded`, a list of texts. */
void epg_agent_box_describe(const epg_agent_box *box, epg_json_writer *writer, const char *key);

/* What must be shown for a command to start: its file behind every link, its package (a node_modules tree, a venv or
 * another interpreter's own directory), and the interpreter that its first line names; nothing for what lies in the
 * system's directories. Paths are absolute; *out is NULL-terminated; free with epg_paths_free. NOT_FOUND, USAGE (it
 * could only be shown together with a whole home). */
epg_code epg_installation_find(const char *command, const char *search_path, char ***out, epg_error *err);
void epg_paths_free(char **paths);

#endif

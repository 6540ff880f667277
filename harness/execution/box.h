/* A bubblewrap sandbox in the making: what is shown in it, and the command line that makes it. Private to this room.
 *
 * Use: epg_box_open; options and paths in the order in which bubblewrap is to take them; epg_box_finish, after which
 * `spawn` is complete; start it; epg_box_await; epg_box_close. */
#ifndef EPG_EXECUTION_BOX_H
#define EPG_EXECUTION_BOX_H

#include "execution/execution.h"
#include "execution/filter.h"
#include "execution/inside/inside.h"

typedef struct epg_words {
    char **texts; /* NULL-terminated once there is one */
    size_t count;
} epg_words;
void epg_words_add(epg_words *words, const char *text); /* copies */
void epg_words_take(epg_words *words, char *text);      /* takes ownership */
void epg_words_free(epg_words *words);

typedef enum epg_box_role { EPG_BOX_POLICY, EPG_BOX_AGENT } epg_box_role;

enum { EPG_BOX_FDS = 24 };

typedef struct epg_box {
    uint32_t drop;         /* when we are root: the unprivileged user that it runs as; 0: ours */
    const char *directory; /* the command's working directory, "/" unless set; borrowed */
    char *tools;           /* the directory of evopolicygym-contain */
    epg_buffer options;    /* bwrap's, each with its NUL */
    epg_words outside;     /* arguments of `contain outside` before its "--" */
    epg_words inside;      /* of `contain inside` */
    epg_words argv;        /* the whole, after epg_box_finish */
    size_t staged;
    int owned[EPG_BOX_FDS]; /* descriptors that are ours to close */
    size_t owned_count;
    int ready;    /* our end */
    int messages; /* what the tools and bwrap printed */
    epg_fd_map fds[EPG_BOX_FDS];
    size_t fd_count;
    pid_t pid; /* of the command, as we see it; 0 before epg_box_await */
    epg_spawn spawn;
} epg_box;

/* UNAVAILABLE: bubblewrap or our own tools are missing, or no identity can be had. `role` keeps identities apart. */
epg_code epg_box_open(epg_box *box, epg_box_role role, epg_error *err);
void epg_box_close(epg_box *box);

void epg_box_option(epg_box *box, const char *const *words); /* NULL-terminated */
#define EPG_BOX_OPTION(box, ...) epg_box_option(box, (const char *const[]){__VA_ARGS__, NULL})
void epg_box_show(epg_box *box, const char *path, const char *at); /* read-only; `path` must be there */
void epg_box_show_here(epg_box *box, const char *path);            /* at its own path; a link as a link */
/* What belongs to us alone and is to look like the sandbox's user's own. */
void epg_box_give(epg_box *box, const char *path, const char *at, bool writable);

/* /usr, /bin and so on, the few files of /etc that programs need, /proc, a /dev with five devices, our own tools. For
 * an Agent also what names and certificates need, and terminals. */
void epg_box_show_system(epg_box *box, epg_box_role role);
/* A memory file system of bounded size. */
void epg_box_scratch(epg_box *box, const char *at, uint64_t bytes);

/* `inner`: the command, its environment and descriptors (below EPG_FD_ARGUMENTS). */
epg_code epg_box_finish(epg_box *box, const epg_spawn *inner, epg_filter_kind kind, bool uncounted, epg_error *err);
/* A descriptor that the command line speaks of; `from` is closed with the box. */
void epg_box_add_fd(epg_box *box, int from, int to);

/* Waits until the command runs inside; then box->pid is its process. EXECUTION with the step that failed; NOT_FOUND
 * when the command could not be run. */
epg_code epg_box_await(epg_box *box, int64_t deadline, epg_error *err);

/* Where evopolicygym-contain and evopolicygym-cell.so are. UNAVAILABLE. Caller frees. */
epg_code epg_tools_find(char **directory, epg_error *err);

#endif

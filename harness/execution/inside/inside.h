/* What the Host's side of the sandbox and the two small programs that work inside it agree on.
 *
 * evopolicygym-contain is one binary with three parts, each a step on the way into a sandbox:
 *   contain outside [--drop ID] [--join FD]... [--stage PATH | --own PATH]... [--proxy HOST PORT] -- COMMAND...
 *       still on the Host, maybe as root: puts what is to be shown where an unprivileged user can reach it (the n-th
 *       path at EPG_STAGE/n of a mount namespace of its own), joins cgroups, becomes user and group ID, runs bwrap.
 *   contain inside [--limit NAME N]... [--stderr FD] [--preload FILE] [--proxy PORT] [--first yes] -- COMMAND...
 *       in the sandbox: lays limits, tells the Host that this point was reached, runs the command.
 *   contain probe ...
 *       in the sandbox, in place of a guest: tries what must not work and tells (probe.c).
 * evopolicygym-cell.so is loaded into the fork server's interpreter (cell.c).
 *
 * They use the C library only, and are told everything on their command line, so that a reader can see in a list of
 * processes what a sandbox is made of. */
#ifndef EPG_EXECUTION_INSIDE_H
#define EPG_EXECUTION_INSIDE_H

/* Descriptors; a guest's own are below EPG_FD_ARGUMENTS. */
enum {
    EPG_FD_ARGUMENTS = 10, /* bwrap's options */
    EPG_FD_FILTER,         /* the filter that bwrap loads */
    EPG_FD_PASSWD,
    EPG_FD_GROUP,
    EPG_FD_READY,       /* to the Host: EPG_READY once inside; then the end (the command runs), or why it does not */
    EPG_FD_CELL_FILTER, /* the filter of a cell */
    EPG_FD_STDERR,      /* the command's stderr; until it runs, stderr is a file that the Host reads when all fails */
    EPG_FD_PROXY,       /* where the listening socket of the one reachable address goes out */
    EPG_FD_LEFT,        /* to the Host: how many processes the Agent left behind, an unsigned int */
    EPG_FD_JOIN         /* cgroup.procs files, from here on */
};

#define EPG_READY "inside"
#define EPG_STAGE "/tmp"
#define EPG_CONTAIN "evopolicygym-contain"
#define EPG_CELL "evopolicygym-cell.so"
#define EPG_INSIDE_DIRECTORY "/run/evopolicygym" /* in the sandbox: our own files */

/* In the environment of the fork server: nine numbers, see struct cell in cell.c. */
#define EPG_CELL_VARIABLE "EPG_CELL"

enum { EPG_INSIDE_ID = 1000 }; /* user and group in the sandbox */

/* The parts of evopolicygym-contain. `argc` and `argv` begin with the part's name. They return an exit code. */
int epg_contain_outside(int argc, char **argv);
int epg_contain_inside(int argc, char **argv);
int epg_contain_probe(int argc, char **argv);

/* One line on stderr ("contain: WHAT: strerror"), and the exit code for it. */
int epg_contain_failed(const char *what);

#endif

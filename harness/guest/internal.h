/* What the files of this room share.
 *
 * A server is the fork server's process and our end of its control socket. A seat is one Policy process with our ends
 * of its three pipes: parked (it waits in its first read) or taken by an Episode. A policy is a taken seat with a
 * channel, a log and what is known of its end. */
#ifndef EPG_GUEST_INTERNAL_H
#define EPG_GUEST_INTERNAL_H

#include "guest/guest.h"
#include "system/log.h"

/* The interpreter's side is harness/guest/python: server.py and evopolicygym/_guest.py. */
enum { EPG_MESSAGE_START = 1, EPG_MESSAGE_ACT = 2 };
enum {
    EPG_MESSAGE_READY = 17,
    EPG_MESSAGE_VALUE = 18,
    EPG_MESSAGE_LOAD_FAILED = 19,
    EPG_MESSAGE_RAISED = 20,
    EPG_MESSAGE_INADMISSIBLE = 21
};

typedef struct epg_server {
    epg_process process; /* pidfd -1: none */
    int control;
    int output; /* a memory file that holds what it printed, for the error that tells of its end */
    epg_ground *ground;
} epg_server;

epg_code epg_server_start(const epg_execution *execution, epg_server *out, epg_error *err);
void epg_server_end(epg_server *server);
/* Asks for one Policy process with these descriptors (read, write, output, ready), and takes the answer to that later.
 */
enum { EPG_SEAT_FDS = 4 };
epg_code epg_server_ask(epg_server *server, const int descriptors[EPG_SEAT_FDS], epg_error *err);
/* The server's own name for the process; 0: it can't fork, because it has threads. */
epg_code epg_server_forked(epg_server *server, int cancel, int64_t deadline, pid_t *name, epg_error *err);

typedef struct epg_reaped {
    epg_exit exit;
    uint64_t max_rss_bytes;
    int64_t cpu_ns;
} epg_reaped;

/* Has the server wait for its child `name`, which ended. */
epg_code epg_server_reap(epg_server *server, pid_t name, int64_t deadline, epg_reaped *out, epg_error *err);

typedef struct epg_seat {
    epg_process process; /* its pidfd is ours, whoever its parent is */
    bool forked;         /* the server is its parent and reaps it, */
    pid_t name;          /* by this process id */
    epg_ground *ground;  /* when it was launched by itself */
    epg_hold *hold;      /* its limits; NULL before they are laid */
    int ready;           /* where a forked process says that it is there; -1 after that */
    int receive, send;   /* our ends */
    int output;          /* where its stdout and stderr come out */
} epg_seat;

/* ASKED: the server's answer is due; FORKED: the process is there and not ready yet, nor known to us. */
typedef enum epg_spare { EPG_SPARE_NONE, EPG_SPARE_ASKED, EPG_SPARE_FORKED, EPG_SPARE_READY } epg_spare;

enum { EPG_GUEST_KEPT = 8 };

struct epg_guest {
    epg_execution execution;
    int cancel;
    epg_company *company;
    epg_server server;
    bool plain;       /* the server can't fork: each process is started anew */
    unsigned unready; /* forked processes in a row that ended before they were ready */
    epg_spare spare_state;
    epg_seat spare;
    uint64_t random; /* state of the generator of sequence numbers */
    pid_t kept[EPG_GUEST_KEPT];
    size_t kept_count;
    epg_guest_stats stats;
};

extern const epg_seat epg_no_seat;

/* Has the next process made, unless there is one already. Best effort: a failure shows when it is taken. */
void epg_seat_park(epg_guest *guest);
/* The parked process, or a new one; alive. */
epg_code epg_seat_take(epg_guest *guest, epg_seat *out, epg_error *err);
/* Reaps a process that ended or was killed. Falls back to reaping it ourselves when the server is gone. */
void epg_seat_reap(epg_guest *guest, epg_seat *seat, epg_reaped *out);
void epg_seat_close(epg_seat *seat); /* its descriptors and its hold; not the process */
/* Ends the server and the spare: at the end, and after trouble. */
void epg_seats_end(epg_guest *guest);
/* Ends every process that a Policy left behind. */
epg_code epg_guest_end_strays(epg_guest *guest, epg_ended *out, epg_error *err);

#endif

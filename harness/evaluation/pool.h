/* The coordinator's side of workers: private to this room. */
#ifndef EPG_EVALUATION_POOL_H
#define EPG_EVALUATION_POOL_H

#include "evaluation/running.h"
#include "evaluation/wire.h"
#include "system/owner.h"

typedef enum epg_worker_state {
    EPG_WORKER_NONE,     /* not started, or ended */
    EPG_WORKER_STARTING, /* configured, its spec not yet seen */
    EPG_WORKER_IDLE,
    EPG_WORKER_EPISODE,
    EPG_WORKER_FEEDBACK
} epg_worker_state;

typedef struct epg_pool_worker {
    epg_worker_state state;
    epg_owned owned;
    epg_running *running;
    epg_channel channel;
    uint32_t sequence;
    char program_digest[EPG_DIGEST_TEXT]; /* of the Program it holds */
    size_t task;                          /* the Episode's place in the plan */
} epg_pool_worker;

struct epg_pool {
    epg_pool_config config; /* its texts are owned copies */
    epg_worker_config worker_config;
    epg_spec spec;
    epg_buffer spec_bytes; /* what every worker must give */
    char *executable;
    epg_pool_worker *workers; /* config.jobs of them */
    int spool_directory;      /* where records are kept until their Feedback stands; -1: unlinked files */
    bool durable;             /* and synced: see epg_evaluation_sync_records */
    epg_evaluation *active;
};

/* Starts a worker in an empty place and sends its configuration; its spec arrives later as a frame. */
epg_code epg_pool_start_worker(epg_pool *pool, epg_pool_worker *worker, epg_error *err);
/* Takes the spec of a starting worker: IDLE then. */
epg_code epg_pool_worker_ready(epg_pool *pool, epg_pool_worker *worker, epg_span spec, epg_error *err);
/* Ends it and all below it at once. */
void epg_pool_kill_worker(epg_pool_worker *worker);
/* Why a worker's channel closed: a fault with its exit, the Benchmark's when a call of it ran in the worker. */
epg_code epg_pool_worker_gone(epg_pool_worker *worker, epg_error *err);
epg_code epg_pool_send(epg_pool_worker *worker, uint8_t type, epg_span body, epg_error *err);

#endif

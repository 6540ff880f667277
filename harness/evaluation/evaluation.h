/* An Evaluation: one Program over a plan of Episodes, a fresh Environment and a fresh Policy process each.
 *
 * The coordinator owns a pool of workers (processes of this binary that speak frames on stdin and stdout) and drives
 * them from its poll loop; Episodes run in parallel and finish in any order, results stand in plan order and are the
 * same for any number of workers. A worker holds the Benchmark; the coordinator never runs guest or Environment code.
 * Records of Episodes are streamed by the workers into spool files that the coordinator owns, and streamed back to a
 * worker for Feedback, so memory does not grow with steps. */
#ifndef EPG_EVALUATION_EVALUATION_H
#define EPG_EVALUATION_EVALUATION_H

#include "benchmark/benchmark.h"
#include "guest/guest.h"
#include "programs/program.h"

typedef struct epg_pool epg_pool;
typedef struct epg_evaluation epg_evaluation;

typedef struct epg_pool_config {
    const char *benchmark; /* as for epg_benchmark_open */
    epg_benchmark_options benchmark_options;
    epg_execution execution;
    unsigned jobs; /* >= 1 */
    double episode_timeout_seconds;
    int64_t call_limit_ns; /* an Environment's own limit per call; its passing is a trusted fault */
} epg_pool_config;

/* Starts the first worker and reads the spec. USAGE for an unknown benchmark, BENCHMARK, EXECUTION, UNAVAILABLE. */
epg_code epg_pool_open(const epg_pool_config *config, epg_pool **out, epg_error *err);
void epg_pool_close(epg_pool *pool); /* ends every worker and all below it */
const epg_spec *epg_pool_spec(const epg_pool *pool);

/* Plans `count` Episodes (blocking, on a worker). `out`: array of `count`, caller frees each and the array. */
epg_code epg_pool_plan(epg_pool *pool, const char *split, uint64_t seed, uint64_t count, epg_episode_spec **out,
                       epg_error *err);

/* One Episode of a plan, as the caller wants it run; `index` is the caller's own (pool index), used in results. */
typedef struct epg_planned_episode {
    uint64_t index;
    const epg_episode_spec *spec; /* borrowed until the evaluation ended */
    uint64_t policy_seed;
} epg_planned_episode;

typedef struct epg_episode_result {
    uint64_t index;
    epg_policy_failure failure;
    double reward; /* the sum; not meaningful when failed */
    uint64_t steps;
    /* Host-only evidence */
    epg_policy_cause cause;
    char *detail;    /* owned; may be NULL */
    char *log;       /* bounded guest output; owned; may be NULL */
    char *killed_by; /* "memory", "cpu", ...; owned; may be NULL */
    epg_ended ended;
    int64_t policy_ns, environment_ns, total_ns;
    char record_sha256[EPG_SHA256_HEX];
    unsigned spool; /* where the record stands: file number, offset, size */
    uint64_t record_offset, record_size;
    bool finished; /* false: this Episode has no outcome (yet) */
} epg_episode_result;
void epg_episode_result_free(epg_episode_result *result);

typedef struct epg_evaluation_result {
    epg_episode_result *episodes; /* plan order */
    size_t count;
    epg_feedback feedback;
    uint64_t policy_failures;
} epg_evaluation_result;
void epg_evaluation_result_free(epg_evaluation_result *result);

/* Called in the coordinator as each Episode ends, in the order of their ends. A failure aborts the evaluation. */
typedef epg_code epg_episode_observer(void *context, const epg_episode_result *episode, size_t completed, size_t total,
                                      epg_error *err);

/* What to evaluate. Borrowed until the evaluation is freed. */
typedef struct epg_evaluation_plan {
    const char *name; /* names the spool files: "submission-000001" */
    const epg_program *program;
    const epg_planned_episode *episodes;
    size_t count;
    const epg_episode_result *done; /* of an evaluation cut off: `count` items, those finished are not run again */
    epg_episode_observer *observer; /* may be NULL */
    void *observer_context;
} epg_evaluation_plan;

/* From now on records are kept in `directory` (which exists), durably where asked, instead of in unlinked files. */
epg_code epg_pool_keep_records(epg_pool *pool, const char *directory, bool durable, epg_error *err);

/* One evaluation at a time a pool. */
epg_code epg_evaluation_start(epg_pool *pool, const epg_evaluation_plan *plan, epg_evaluation **out, epg_error *err);

/* For the coordinator's poll loop: descriptors to wait for (returns how many were written, at most `room`), without a
 * deadline, for the limits on Policy and Environment are the workers'; and the turn to take when one is ready. `done`
 * turns true once: with EPG_OK the result can be taken; with a fault the evaluation is aborted and its workers are
 * ended, to be started anew when they are needed. */
struct pollfd;
size_t epg_evaluation_poll_fds(const epg_evaluation *evaluation, struct pollfd *fds, size_t room);
epg_code epg_evaluation_turn(epg_evaluation *evaluation, bool *done, epg_error *err);
/* Makes the records of the Episodes that ended so far durable, where records are kept so (epg_pool_keep_records): to be
 * called before anything durable says that they ended. At the end of an evaluation all of them are. */
epg_code epg_evaluation_sync_records(epg_evaluation *evaluation, epg_error *err);
void epg_evaluation_take(epg_evaluation *evaluation, epg_evaluation_result *out);
/* Frees; a running one is stopped: its workers are ended at once and replaced at the next start. */
void epg_evaluation_free(epg_evaluation *evaluation);

/* After the result was used (published): removes the spool files of this evaluation's name. */
void epg_evaluation_discard_records(epg_pool *pool, const char *name);

/* All of the above in one blocking call; `cancel` (-1: none) readable stops it with INTERRUPTED. */
epg_code epg_evaluate(epg_pool *pool, const epg_evaluation_plan *plan, int cancel, epg_evaluation_result *out,
                      epg_error *err);

/* The worker's main, for the hidden subcommand. */
int epg_worker_main(int argc, char **argv);

#endif

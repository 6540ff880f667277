/* The task text: what an Agent is told, in Markdown.
 *
 * One text for every agent, made of facts alone: the Host's rules, this Run's numbers, the exact commands and the
 * Benchmark's public spec. Nothing in it names a seed, a scenario, a held-out split or a path of the Host. The same
 * input gives the same bytes. */
#ifndef EPG_AGENTS_TASK_H
#define EPG_AGENTS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "benchmark/benchmark.h"

typedef struct epg_task {
    const epg_spec *spec; /* borrowed; the public projection of it is quoted */
    uint64_t episode_budget;
    uint64_t episode_pool_size;
    uint64_t max_submissions;
    uint64_t max_episodes_per_submission; /* 0: no cap of its own */
    bool require_budget_exhaustion;
    double episode_timeout_seconds;
    double agent_timeout_seconds; /* from the Agent's start to its end */
    double finish_grace_seconds;  /* 0: not mentioned */
    uint64_t bulk_feedback_retention_bytes;
    bool has_validation;
    uint64_t validation_episodes;       /* for each candidate */
    uint64_t validation_max_candidates; /* meaningless without Validation: then finish takes one */
    bool has_assessment;
    uint64_t assessment_episodes;
    uint64_t program_max_files; /* 0: the limits are not mentioned */
    uint64_t program_max_bytes;
    uint64_t program_max_file_bytes;
    const char *const *skills; /* names, laid at skills/NAME/ */
    size_t skill_count;
} epg_task;

/* Appends the whole text. */
void epg_task_text(const epg_task *task, epg_buffer *out);

/* Appends a selector that the session would take as the first submission of this Run: inside the pool and every cap,
 * and large enough for the budget policy ("0:8", "0"). */
void epg_task_example_selector(const epg_task *task, epg_buffer *out);

/* What stands when an Agent is started again in a Run that was interrupted. */
typedef struct epg_task_progress {
    uint64_t submissions;        /* published so far */
    const char *last_submission; /* NULL: none */
    double last_score;
    uint64_t episodes_remaining;
    uint64_t submissions_remaining;
    double seconds_remaining;
} epg_task_progress;
/* Appends the note that follows the task text after an interruption. */
void epg_task_resume_note(const epg_task_progress *progress, epg_buffer *out);

#endif

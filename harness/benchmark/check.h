/* Checking a Benchmark of any kind before it is trusted: what `evopolicygym benchmark check` does.
 *
 * Episodes are played twice with the same Actions (the second time in reverse order, so that what one Episode leaves
 * behind for another shows), in a process of its own with a limit on every call: a Benchmark that crashes, hangs, exits
 * or leaves processes behind is a finding, never an end of ours. Looked at, as `aspect`:
 *   structure    spec, plan, observations, steps, Feedback keep every rule; strange Actions are refused, not faults
 *   determinism  spec, plan, Episodes and Feedback are the same twice
 *   ends         an Episode ends within its horizon
 *   cleanup      close works at any time; no descriptor or process is left
 *   limits       depth, size and number bounds; the time limit on a call
 *   leaks        no seed in observations; no seed or path of this machine in Feedback */
#ifndef EPG_BENCHMARK_CHECK_H
#define EPG_BENCHMARK_CHECK_H

#include "benchmark/benchmark.h"

typedef struct epg_benchmark_check_request {
    const char *benchmark; /* as for epg_benchmark_open */
    epg_benchmark_options options;
    const char *split;
    uint64_t seed;
    uint64_t episodes;     /* >= 1 */
    uint64_t steps;        /* at most so many of an Episode */
    const json_t *actions; /* a list of Episodes, each a list of Actions as public JSON; NULL: drawn from the space */
    int64_t call_limit_ns;
} epg_benchmark_check_request;

typedef struct epg_benchmark_report_line {
    char *aspect; /* for a note: "note" */
    char *text;
} epg_benchmark_report_line;

typedef struct epg_benchmark_report {
    char *id; /* the Benchmark's; NULL when it told none */
    epg_benchmark_report_line *findings;
    size_t finding_count;
    epg_benchmark_report_line *notes; /* worth knowing, no fault */
    size_t note_count;
    uint64_t episodes, steps; /* played the first time */
    double open_seconds;      /* of open and reset, the mean of an Episode */
    double step_seconds;      /* the mean of a step */
    double feedback_seconds;
} epg_benchmark_report;
void epg_benchmark_report_free(epg_benchmark_report *report);

/* OK with a report, whatever it says. USAGE: no such Benchmark or split, Actions that can't be read or drawn;
 * UNAVAILABLE: this kind of Benchmark can't be had here. */
epg_code epg_benchmark_check(const epg_benchmark_check_request *request, epg_benchmark_report *out, epg_error *err);

#endif

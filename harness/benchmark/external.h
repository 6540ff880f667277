/* Benchmarks in a process of their own, which speaks frames: the Host's side of docs/benchmark-protocol.md.
 *
 * One process serves one worker: it is started once, answers one question at a time, and holds at most one Environment.
 * A monitor owns it, so nothing that it starts outlives it, and nothing of it outlives us. It reads questions from
 * descriptor 3 and writes answers to descriptor 4; what it prints is never a frame: the first and the last of it are
 * kept, and its last lines are shown on our standard error: 20 with a fault, 5 at its end.
 *
 * All that it does wrong is BENCHMARK, with a text that names the Benchmark, the call and why. After a frame that could
 * not be read, an answer that did not come in time, or its end, it is killed and asked nothing more. */
#ifndef EPG_BENCHMARK_EXTERNAL_H
#define EPG_BENCHMARK_EXTERNAL_H

#include "benchmark/benchmark.h"

typedef struct epg_external_start {
    const char *name;               /* what messages call it: as the user wrote it */
    const char *const *argv;        /* argv[0] is looked up in PATH when it has no '/' */
    const char *const *environment; /* NULL: ours */
    const char *directory;          /* where it runs; NULL: our working directory */
    int64_t call_limit_ns;          /* for one call; 0: none */
    uint64_t memory_bytes;          /* for it and all that it starts, or each of them where no control group can be
                                     * had; 0: no limit */
    struct epg_company *company;    /* NULL: none; not owned */
} epg_external_start;

/* Starts the process; asks nothing yet. USAGE when the command is not there or can't be run. */
epg_code epg_external_open(const epg_external_start *start, epg_benchmark **out, epg_error *err);

/* "cmd:": `text` is a command line, split into words as a shell would, without a shell. */
epg_code epg_command_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out, epg_error *err);
/* The words of a command line: blanks separate; '...' is literal; a backslash takes the next byte, in "..." only before
 * one of \ " $ `. USAGE: a quote is left open, or there is no word. *words: a NULL-terminated array in one allocation.
 */
epg_code epg_command_words(const char *text, char ***words, epg_error *err);

/* "python:": `text` is MODULE:FACTORY[?key=value&...]. */
epg_code epg_python_benchmark_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out,
                                   epg_error *err);

#endif

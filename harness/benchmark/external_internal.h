/* What the files of the external kind share: the frames and the exchange of them. */
#ifndef EPG_BENCHMARK_EXTERNAL_INTERNAL_H
#define EPG_BENCHMARK_EXTERNAL_INTERNAL_H

#include "benchmark/external.h"
#include "execution/cgroup.h"
#include "system/frame.h"
#include "system/log.h"
#include "system/owner.h"

#define EPG_EXTERNAL_PROTOCOL "evopolicygym/benchmark/v1"

/* Questions are capital letters, answers the small ones; during Feedback it asks and we answer. */
enum {
    EPG_ASK_SPEC = 'S',
    EPG_ASK_EPISODES = 'E',
    EPG_ASK_OPEN = 'O',
    EPG_ASK_RESET = 'R',
    EPG_ASK_STEP = 'A',
    EPG_ASK_CLOSE = 'C',
    EPG_ASK_FEEDBACK = 'F',
    EPG_ASK_BASELINE = 'B',
    EPG_TELL_DONE = 'd',
    EPG_TELL_FAULT = 'x',
    EPG_TELL_INVALID = 'i',
    EPG_TELL_ARTIFACT = 'm',
    EPG_TELL_FILE = 'p',
    EPG_TELL_WANT_RECORD = 'n',
    EPG_TELL_WANT_STEPS = 't',
    EPG_ASK_RECORD = 'N', /* the answer to EPG_TELL_WANT_RECORD */
    EPG_ASK_STEPS = 'T'
};

typedef struct epg_external {
    epg_benchmark base;
    epg_environment environment; /* the one that can be open */
    bool environment_open;
    char *name;
    epg_owned owned;
    epg_channel channel;
    uint32_t sequence;
    int64_t limit_ns;
    epg_cgroup group; /* its memory's, where there is a limit and groups can be had */
    int output;       /* where its stdout and stderr come out; -1 when that is over */
    epg_log log;
    bool heard; /* it answered, once */
    bool dead;  /* it was killed, or ended: nothing more is asked */
} epg_external;

/* A fault of the Benchmark that leaves the protocol in step. */
epg_code epg_external_fails(epg_external *self, const char *call, const char *why, epg_error *err);
/* As above, and ends the process: what it would say next can't be trusted. */
epg_code epg_external_breaks(epg_external *self, const char *call, const char *why, epg_error *err);
/* Takes what it has printed by now; `context` is the epg_external. */
void epg_external_take_output(void *context);
/* Shows the last lines of what it printed since the last time, on our standard error. */
void epg_external_show_output(epg_external *self, size_t lines);
int64_t epg_external_deadline(const epg_external *self);
epg_code epg_external_send(epg_external *self, uint8_t type, epg_span head, epg_span tail, const char *call,
                           int64_t deadline, epg_error *err);
/* The next frame of this exchange, with a body that is one value (or empty); a fault that it tells is an error. */
epg_code epg_external_hear(epg_external *self, const char *call, int64_t deadline, epg_frame *frame, epg_error *err);
/* A question and its one answer, of the type that is the small letter of the question. */
epg_code epg_external_ask(epg_external *self, uint8_t type, epg_span body, const char *call, epg_frame *frame,
                          epg_error *err);

epg_code epg_external_feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err);
epg_code epg_external_baseline(epg_benchmark *benchmark, epg_program *out, epg_error *err);

#endif

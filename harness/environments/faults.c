/* test/faults: see testing.h. It stands before a test/idle and breaks what goes through. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "environments/testing.h"

/* Every call in every mode, then the faults of content; an index into `choices` is call * MODES + mode. */
typedef enum call { SPEC, EPISODES, OPEN, RESET, STEP, CLOSE, FEEDBACK, CALLS } call;
typedef enum mode { FAIL, HANG, SLOW, CRASH, EXIT, MODES } mode;
#define MODES_OF(name) name, "hang-" name, "slow-" name, "crash-" name, "exit-" name
static const char *const choices[] = {
    MODES_OF("spec"),     MODES_OF("episodes"), MODES_OF("open"),
    MODES_OF("reset"),    MODES_OF("step"),     MODES_OF("close"),
    MODES_OF("feedback"), "observation-nan",    "observation-deep",
    "observation-large",  "observation-junk",   "reset-observation-deep",
    "reward-nan",         "reward-huge",        "metrics-junk",
    "never-ends",         "score-nan",          "content-junk",
    "artifact-name",      "artifact-large",     NULL,
};
enum {
    OBSERVATION_NAN = CALLS * MODES,
    OBSERVATION_DEEP,
    OBSERVATION_LARGE,
    OBSERVATION_JUNK,
    RESET_OBSERVATION_DEEP,
    REWARD_NAN,
    REWARD_HUGE,
    METRICS_JUNK,
    NEVER_ENDS,
    SCORE_NAN,
    CONTENT_JUNK,
    ARTIFACT_NAME,
    ARTIFACT_LARGE,
};

enum { DEEP = 40, LARGE = 5 * 1024 * 1024 };

typedef struct faults {
    epg_benchmark base;
    epg_benchmark *inner;
    int at;
    uint64_t after, milliseconds, steps;
} faults;

typedef struct broken_environment {
    epg_environment base;
    epg_environment *inner;
    uint64_t step;
} broken_environment;

static void rest(uint64_t milliseconds)
{
    struct timespec time = {.tv_sec = (time_t)(milliseconds / 1000), .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&time, &time) != 0) {
    }
}

/* Does what was asked for in `which` call, if anything. */
static epg_code trip(const faults *self, call which, epg_error *err)
{
    if (self->at < 0 || self->at >= CALLS * MODES || self->at / MODES != (int)which) {
        return EPG_OK;
    }
    switch ((mode)(self->at % MODES)) {
    case FAIL:
        return epg_fail(err, EPG_ERR_BENCHMARK, "test/faults: %s was told to fail", choices[self->at]);
    case HANG:
        for (;;) {
            (void)pause();
        }
    case SLOW:
        rest(self->milliseconds);
        return EPG_OK;
    case CRASH:
        (void)raise(SIGKILL);
        return EPG_OK;
    case EXIT:
        _exit(3);
    case MODES:
        break;
    }
    return EPG_OK;
}

static void put_deep(epg_buffer *out)
{
    epg_buffer_clear(out);
    for (int i = 0; i < DEEP; i++) {
        epg_value_put_list(out, 1);
    }
    epg_value_put_null(out);
}

static void put_large(epg_buffer *out)
{
    EPG_AUTO_FREE uint8_t *bytes = epg_alloc(LARGE);
    epg_buffer_clear(out);
    epg_value_put_bytes(out, epg_span_of(bytes, LARGE));
}

static epg_code get_spec(epg_benchmark *benchmark, epg_spec *out, epg_error *err)
{
    const faults *self = (const faults *)benchmark;
    EPG_TRY(trip(self, SPEC, err));
    EPG_TRY(epg_benchmark_spec(self->inner, out, err));
    free(out->id);
    out->id = epg_strdup("test/faults");
    return EPG_OK;
}

static epg_code plan(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                     epg_error *err)
{
    const faults *self = (const faults *)benchmark;
    EPG_TRY(trip(self, EPISODES, err));
    return self->inner->vtable->episodes(self->inner, split, seed, count, out, err);
}

static epg_code open_environment(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                                 epg_error *err)
{
    const faults *self = (const faults *)benchmark;
    EPG_TRY(trip(self, OPEN, err));
    epg_environment *inner = NULL;
    EPG_TRY(self->inner->vtable->open(self->inner, episode, &inner, err));
    broken_environment *environment = epg_alloc(sizeof *environment);
    environment->base.benchmark = benchmark;
    environment->inner = inner;
    *out = &environment->base;
    return EPG_OK;
}

static epg_code reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    broken_environment *self = (broken_environment *)environment;
    const faults *benchmark = (const faults *)environment->benchmark;
    EPG_TRY(trip(benchmark, RESET, err));
    EPG_TRY(benchmark->inner->vtable->reset(self->inner, observation, err));
    if (benchmark->at == RESET_OBSERVATION_DEEP) {
        put_deep(observation);
    }
    return EPG_OK;
}

static void break_step(const faults *benchmark, epg_step *out)
{
    static const uint8_t not_a_number[9] = {'F', 0x7f, 0xf8, 0, 0, 0, 0, 0, 0};
    switch (benchmark->at) {
    case OBSERVATION_NAN:
        epg_buffer_clear(&out->observation);
        (void)epg_buffer_append(&out->observation, not_a_number, sizeof not_a_number);
        break;
    case OBSERVATION_DEEP:
        put_deep(&out->observation);
        break;
    case OBSERVATION_LARGE:
        put_large(&out->observation);
        break;
    case OBSERVATION_JUNK:
        (void)epg_buffer_text(&out->observation, "junk");
        break;
    case REWARD_NAN:
        out->reward = (double)NAN;
        break;
    case METRICS_JUNK:
        (void)epg_buffer_text(&out->metrics, "junk");
        break;
    default:
        break;
    }
}

static epg_code step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    broken_environment *self = (broken_environment *)environment;
    const faults *benchmark = (const faults *)environment->benchmark;
    bool now = self->step++ == benchmark->after;
    if (now) {
        EPG_TRY(trip(benchmark, STEP, err));
    }
    EPG_TRY(benchmark->inner->vtable->step(self->inner, action, out, err));
    if (now) {
        break_step(benchmark, out);
    }
    if (benchmark->at == REWARD_HUGE) {
        out->reward = 1e308;
    }
    if (benchmark->at == NEVER_ENDS && out->truncated) {
        out->truncated = false;
        EPG_AUTO_BUFFER unused = {0};
        return benchmark->inner->vtable->reset(self->inner, &unused, err);
    }
    return EPG_OK;
}

static epg_code close_environment(epg_environment *environment, epg_error *err)
{
    broken_environment *self = (broken_environment *)environment;
    const faults *benchmark = (const faults *)environment->benchmark;
    epg_code code = trip(benchmark, CLOSE, err);
    epg_code inner = benchmark->inner->vtable->close(self->inner, code == EPG_OK ? err : NULL);
    free(self);
    return code == EPG_OK ? inner : code;
}

static epg_code feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err)
{
    const faults *self = (const faults *)benchmark;
    EPG_TRY(trip(self, FEEDBACK, err));
    EPG_TRY(self->inner->vtable->feedback(self->inner, records, out, err));
    if (self->at == SCORE_NAN) {
        out->score = (double)NAN;
    } else if (self->at == CONTENT_JUNK) {
        (void)epg_buffer_text(&out->content, "junk");
    } else if (self->at == ARTIFACT_NAME) {
        (void)epg_feedback_add(out, "../outside", "text/plain", false);
    } else if (self->at == ARTIFACT_LARGE) {
        epg_artifact *artifact = epg_feedback_add(out, "large.bin", "application/octet-stream", true);
        (void)epg_buffer_reserve(&artifact->content, EPG_ARTIFACT_BYTES_MAX + 1);
        memset(artifact->content.data, 0, EPG_ARTIFACT_BYTES_MAX + 1);
        artifact->content.size = EPG_ARTIFACT_BYTES_MAX + 1;
    }
    return EPG_OK;
}

static void destroy(epg_benchmark *benchmark)
{
    faults *self = (faults *)benchmark;
    epg_benchmark_destroy(self->inner);
    free(self);
}

static epg_code prepare(faults *self, const char *text, epg_error *err)
{
    const epg_parameter table[] = {
        {.name = "at", .kind = EPG_PARAMETER_CHOICE, .target = &self->at, .choices = choices},
        {.name = "after", .kind = EPG_PARAMETER_COUNT, .target = &self->after, .maximum = 1e9},
        {.name = "milliseconds", .kind = EPG_PARAMETER_COUNT, .target = &self->milliseconds, .maximum = 1e6},
        {.name = "steps", .kind = EPG_PARAMETER_COUNT, .target = &self->steps, .minimum = 1, .maximum = 1e9},
    };
    EPG_TRY(epg_parameters_parse("test/faults", text, table, EPG_COUNT(table), err));
    EPG_AUTO_FREE char *inner = epg_format("steps=%llu", (unsigned long long)self->steps);
    return epg_simple_open(&epg_idle_kind, inner, &self->inner, err);
}

epg_code epg_faults_open(const char *parameters, epg_benchmark **out, epg_error *err)
{
    static const epg_benchmark_vtable vtable = {
        .spec = get_spec,
        .episodes = plan,
        .open = open_environment,
        .reset = reset,
        .step = step,
        .close = close_environment,
        .feedback = feedback,
        .destroy = destroy,
    };
    faults *self = epg_alloc(sizeof *self);
    *self = (faults){.base.vtable = &vtable, .at = -1, .milliseconds = 200, .steps = 3};
    epg_code code = prepare(self, parameters, err);
    if (code != EPG_OK) {
        destroy(&self->base);
        return code;
    }
    *out = &self->base;
    return EPG_OK;
}

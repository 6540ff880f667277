/* `evopolicygym replay`: a Run's snapshots evaluated again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/replay_state.h"
#include "cli/replay_told.h"
#include "cli/setup.h"
#include "cli/traces_option.h"
#include "system/files.h"
#include "system/io.h"
#include "system/signals.h"

#define SCHEMA "evopolicygym/replay/v1"

static const char usage[] =
    "Usage: evopolicygym replay RUN [--all | --final | --submission ID] [OPTIONS]\n"
    "       evopolicygym replay RUN --on SPLIT:EPISODES[:SEED]\n"
    "                               [--all | --final | --submission ID] [OPTIONS]\n"
    "\n"
    "Evaluates a Run's recorded snapshots again over the same Episodes with the same seeds, training, Validation and\n"
    "Assessment, and tells whether every Episode went as it was recorded, or where the first one did not. Exit code "
    "1:\n"
    "something differs. With --on, measures them on fresh Episodes instead, the same for all.\n"
    "The Run's config.json decides which Benchmark and interpreter are started: replay only Runs that you trust.";
static const char examples[] = "  # Did it go as it was recorded? All of it, or the selected Program alone.\n"
                               "  evopolicygym replay out/first\n"
                               "  evopolicygym replay out/first --final --json\n"
                               "  evopolicygym replay out/first --submission 3 \\\n"
                               "      --execution process --allow-unsafe-process\n"
                               "\n"
                               "  # The learning curve on 200 Episodes of the test split; a long one goes on\n"
                               "  # where it was cut off.\n"
                               "  evopolicygym replay out/first --on test:200:7\n"
                               "  evopolicygym replay out/first --on test:5000 --state curve.state\n";

typedef struct replaying {
    const epg_reading *reading;
    epg_replay *replay;
    const epg_replay_on *on; /* NULL: the recorded Episodes */
    epg_replay_state state;
    bool json;
    epg_json_writer *writer; /* of the document, with --json */
    size_t evaluations, episodes, equal, differing;
} replaying;

/* --- telling --- */

static epg_code tell(replaying *self, const json_t *told, epg_error *err)
{
    EPG_AUTO_BUFFER out = {0};
    bool first = self->evaluations++ == 0;
    self->episodes += (size_t)json_integer_value(json_object_get(told, "episodes"));
    self->equal += (size_t)json_integer_value(json_object_get(told, "equal_episodes"));
    self->differing += json_is_false(json_object_get(told, "equal"));
    if (self->json) {
        epg_json_put_json(self->writer, NULL, told);
        return EPG_OK;
    }
    if (self->on != NULL && first) {
        epg_replay_told_fresh_head(self->on, &out);
    }
    if (self->on != NULL) {
        epg_replay_told_fresh_text(told, &out);
    } else {
        epg_replay_told_text(told, &out);
    }
    EPG_TRY(epg_cli_print(&out, err));
    (void)fflush(stdout);
    return EPG_OK;
}

static epg_code visit(void *context, const epg_replay_result *result, epg_error *err)
{
    replaying *self = context;
    EPG_AUTO_JSON *told = epg_replay_told(result, self->on != NULL);
    EPG_TRY(epg_replay_state_add(&self->state, told, err));
    return tell(self, told, err);
}

/* What an earlier replay has done is told from its file. */
static epg_code known(void *context, const char *phase, uint64_t number, bool *is_known, epg_error *err)
{
    const replaying *self = context;
    const json_t *told = NULL;
    EPG_TRY(epg_replay_state_find(&self->state, self->reading, phase, number, &told, err));
    *is_known = told != NULL;
    return EPG_OK;
}

static epg_code recall(void *context, const char *phase, uint64_t number, epg_error *err)
{
    const json_t *told = NULL;
    replaying *self = context;
    EPG_TRY(epg_replay_state_find(&self->state, self->reading, phase, number, &told, err));
    return tell(self, told, err);
}

/* --- doing --- */

typedef struct chosen {
    uint64_t first, last; /* numbers */
} chosen;

static epg_code replay_all(replaying *self, chosen which, int cancel, bool *negative, epg_error *err)
{
    const epg_replay_visitor visitor = {.visit = visit, .known = known, .recall = recall, .context = self};
    EPG_TRY(epg_replay_submissions(self->replay, which.first, which.last, cancel, &visitor, err));
    *negative = self->differing > 0;
    if (!self->json) {
        (void)printf("%zu of %zu Episodes of %zu evaluations are equal\n", self->equal, self->episodes,
                     self->evaluations);
    }
    return EPG_OK;
}

static epg_code measure_all(replaying *self, chosen which, int cancel, epg_error *err)
{
    const epg_replay_visitor visitor = {.visit = visit, .known = known, .recall = recall, .context = self};
    return epg_replay_measure(self->replay, self->on, which.first, which.last, cancel, &visitor, err);
}

static epg_code do_all(replaying *self, chosen which, int cancel, bool *negative, epg_error *err)
{
    epg_code code =
        self->on != NULL ? measure_all(self, which, cancel, err) : replay_all(self, which, cancel, negative, err);
    if (code == EPG_ERR_INTERRUPTED && self->state.fd >= 0) {
        return epg_fail_as(err, code, "what was done stands in the --state file, the same command goes on");
    }
    return code;
}

/* The document around the evaluations; printed only when all went well. */
static epg_code replay_json(replaying *self, chosen which, int cancel, bool *negative, epg_error *err)
{
    EPG_AUTO_BUFFER out = {0};
    epg_json_writer writer;
    self->writer = &writer;
    epg_json_begin(&writer, &out, 2);
    epg_json_object(&writer, NULL);
    epg_json_put_text(&writer, "directory", self->reading->path);
    epg_json_array(&writer, "evaluations");
    epg_code code = do_all(self, which, cancel, negative, err);
    epg_json_end(&writer);
    if (self->on != NULL) {
        epg_json_object(&writer, "on");
        epg_json_put_u64(&writer, "episodes", self->on->episodes);
        epg_json_put_u64(&writer, "seed", self->on->seed);
        epg_json_put_text(&writer, "split", self->on->split);
        epg_json_end(&writer);
    } else {
        epg_json_put_null(&writer, "on");
    }
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_end(&writer);
    epg_json_finish(&writer);
    self->writer = NULL;
    return code == EPG_OK ? epg_cli_print(&out, err) : code;
}

static epg_code parse_on(const char *text, epg_replay_on *out, char **split, epg_error *err)
{
    const char *first = strchr(text, ':');
    const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
    uint64_t seed = 0;
    uint64_t episodes = 0;
    size_t size = first == NULL ? 0 : second != NULL ? (size_t)(second - first) - 1 : strlen(first + 1);
    if (first == NULL || first == text || !epg_parse_u64(first + 1, size, 1000000, &episodes) || episodes == 0 ||
        (second != NULL && !epg_parse_u64(second + 1, strlen(second + 1), UINT64_MAX, &seed))) {
        return epg_fail(err, EPG_ERR_USAGE, "--on takes SPLIT:EPISODES or SPLIT:EPISODES:SEED, as in test:100:7");
    }
    *split = epg_strndup(text, (size_t)(first - text));
    *out = (epg_replay_on){.split = *split, .episodes = episodes, .seed = seed};
    return EPG_OK;
}

static epg_code choose(const epg_options *options, const epg_reading *reading, bool fresh, chosen *out, epg_error *err)
{
    const epg_option *submission = epg_option_find(options, "submission");
    bool final = epg_option_given(options, "final");
    int given = submission->given + final + epg_option_given(options, "all");
    if (given > 1) {
        return epg_fail(err, EPG_ERR_USAGE, "give one of --all, --final and --submission");
    }
    if (final || submission->given) {
        EPG_TRY(epg_reading_find(reading, final ? "final" : submission->value, &out->first, err));
        out->last = out->first;
        return EPG_OK;
    }
    if (reading->history.submission_count == 0 && !fresh) {
        return epg_fail(err, EPG_ERR_USAGE, "'%s' has no submission to replay", reading->path);
    }
    *out = (chosen){fresh ? 0 : 1, reading->history.submission_count};
    return EPG_OK;
}

static void close_replay(epg_replay **replay)
{
    epg_replay_close(*replay);
}

/* The directory that --traces-to names, made where it is not there. */
static epg_code open_traces(const epg_options *options, epg_replay_setup *setup, epg_error *err)
{
    const epg_option *to = epg_option_find(options, "traces-to");
    bool full = false;
    EPG_TRY(epg_traces_option_read(options, &full, &setup->trace_bytes, err));
    if (full != to->given) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "--record-traces full and --traces-to DIR go together: nothing is written to "
                        "the Run");
    }
    if (full && epg_io_mkdir(AT_FDCWD, to->value, 0700) != 0 && errno != EEXIST) {
        (void)epg_fail_errno(err, errno, "can't make the directory '%s'", to->value);
        return epg_fail_as(err, EPG_ERR_USAGE, "--traces-to");
    }
    return full ? epg_dir_open(AT_FDCWD, to->value, &setup->traces, err) : EPG_OK;
}

static epg_code read_setup(const epg_options *options, epg_replay_setup *out, char **python, epg_error *err)
{
    EPG_TRY(epg_setup_jobs(options, &out->jobs, err));
    if (epg_option_given(options, "python")) {
        EPG_TRY(epg_python_find(epg_option_text(options, "python"), python, err));
    }
    out->execution = epg_option_text(options, "execution");
    out->python = *python;
    out->allow_unsafe = epg_option_given(options, "allow-unsafe-process");
    return open_traces(options, out, err);
}

static void setup_close(epg_replay_setup *setup)
{
    epg_close_cleanup(&setup->traces);
}

static epg_code run_replay(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(epg_reading_free) epg_reading reading = {.run = -1};
    EPG_CLEANUP(close_replay) epg_replay *opened = NULL;
    EPG_CLEANUP(epg_replay_state_close) epg_replay_state state = {.fd = -1};
    EPG_CLEANUP(setup_close) epg_replay_setup setup = {.traces = -1};
    EPG_AUTO_FREE char *split = NULL;
    EPG_AUTO_FREE char *python = NULL;
    EPG_AUTO_CLOSE int signals = -1;
    epg_replay_on on = {0};
    chosen which = {0};
    bool fresh = epg_option_given(options, "on");
    const epg_option *file = epg_option_find(options, "state");
    if (fresh) {
        EPG_TRY(parse_on(epg_option_text(options, "on"), &on, &split, err));
    }
    EPG_TRY(epg_reading_open(options->operands[0], EPG_READ_EPISODES, &reading, err));
    EPG_TRY(choose(options, &reading, fresh, &which, err));
    EPG_TRY(read_setup(options, &setup, &python, err));
    EPG_TRY(epg_signals_open(&signals, err));
    if (file->given) {
        EPG_TRY(epg_replay_state_open(file->value, &reading, fresh ? &on : NULL, python, &state, err));
    }
    EPG_TRY(epg_replay_open(&reading, &setup, &opened, err));
    replaying self = {.reading = &reading,
                      .replay = opened,
                      .on = fresh ? &on : NULL,
                      .state = state, /* borrowed */
                      .json = epg_option_given(options, "json")};
    return self.json ? replay_json(&self, which, signals, negative, err) : do_all(&self, which, signals, negative, err);
}

static const epg_option table[] = {
    {.name = "all", .kind = EPG_OPTION_FLAG, .help = "every submission (so it is when nothing is named)"},
    {.name = "final", .kind = EPG_OPTION_FLAG, .help = "the selected submission"},
    {.name = "submission",
     .kind = EPG_OPTION_VALUE,
     .value_name = "ID",
     .help = "one: submission-000003, 3, last, best, final; with --on initial too"},
    {.name = "on",
     .kind = EPG_OPTION_VALUE,
     .value_name = "SPLIT:EPISODES[:SEED]",
     .help = "measure on these Episodes instead (seed 0)"},
    {.name = "jobs", .short_name = 'j', .kind = EPG_OPTION_VALUE, .value_name = "N", .help = "Episodes at a time"},
    {.name = "execution",
     .kind = EPG_OPTION_VALUE,
     .value_name = "PROFILE",
     .help = "sandbox or process (as the Run was)"},
    {.name = "allow-unsafe-process",
     .kind = EPG_OPTION_FLAG,
     .help = "acknowledge that the profile process contains nothing"},
    {.name = "python",
     .kind = EPG_OPTION_VALUE,
     .value_name = "PATH",
     .help = "interpreter of the Policies (the Run's)"},
    {.name = "state",
     .kind = EPG_OPTION_VALUE,
     .value_name = "FILE",
     .help = "keep what is done in FILE, and go on from there when it holds some already"},
    EPG_TRACES_OPTIONS,
    {.name = "traces-to",
     .kind = EPG_OPTION_VALUE,
     .value_name = "DIR",
     .help = "where whole traces of what is replayed go"},
    EPG_CLI_JSON,
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_replay = {
    .name = "replay",
    .summary = "evaluate a Run's snapshots again, and compare",
    .usage = usage,
    .examples = examples,
    .wanted = "name one Run: evopolicygym replay RUN",
    .options = {table},
    .least = 1,
    .most = 1,
    .run = run_replay,
};

#include "benchmark/library.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/defaults.h"
#include "benchmark/library_host.h"
#include "system/patience.h"

typedef struct library {
    epg_benchmark base;
    void *handle; /* of dlopen */
    char *name;   /* as the user wrote it, for messages */
    char *id;     /* of its spec */
    const evo_benchmark *table;
    void *benchmark; /* its own */
    double failed_return;
} library;

typedef struct library_environment {
    epg_environment base;
    void *environment; /* its own */
} library_environment;

static epg_code fault(const library *self, const char *call, const evo_error *error, epg_error *err)
{
    EPG_AUTO_FREE char *said = epg_printable(error->text, strnlen(error->text, sizeof error->text));
    return epg_fail(err, EPG_ERR_BENCHMARK, "%s: %s failed: %s", self->name, call,
                    said[0] == '\0' ? "it did not say why" : said);
}

/* --- Spec and plan --- */

/* A text of the library's may be missing: epg_spec_check says so. */
static char *copy_text(const char *text)
{
    return epg_strdup(text == NULL ? "" : text);
}

static void empty_map_unless_written(epg_buffer *buffer)
{
    if (buffer->size == 0) {
        epg_value_put_map(buffer, 0);
    }
}

static epg_code get_spec(epg_benchmark *benchmark, epg_spec *out, epg_error *err)
{
    library *self = (library *)benchmark;
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {.id = NULL};
    evo_out outs[] = {
        {&spec.observation_space}, {&spec.action_space}, {&spec.environment_parameters}, {&spec.metadata}};
    evo_spec told = {.observation_space = &outs[0],
                     .action_space = &outs[1],
                     .environment_parameters = &outs[2],
                     .metadata = &outs[3]};
    evo_error error = {.text = ""};
    if (self->table->spec(self->benchmark, &told, &error) != 0) {
        return fault(self, "spec", &error, err);
    }
    spec.id = copy_text(told.id);
    spec.description = copy_text(told.description);
    spec.primary_metric = copy_text(told.primary_metric);
    spec.direction = told.minimize ? EPG_MINIMIZE : EPG_MAXIMIZE;
    spec.max_episode_steps = told.max_episode_steps;
    empty_map_unless_written(&spec.environment_parameters);
    empty_map_unless_written(&spec.metadata);
    if (!isfinite(told.failed_return)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "%s: spec: failed_return is not finite", self->name);
    }
    EPG_TRY(epg_spec_check(&spec, err));
    free(self->id);
    self->id = epg_strdup(spec.id);
    self->failed_return = told.failed_return;
    *out = spec;
    spec = (epg_spec){.id = NULL};
    return EPG_OK;
}

/* The defaults need what only the spec tells. */
static epg_code know_spec(library *self, epg_error *err)
{
    if (self->id != NULL) {
        return EPG_OK;
    }
    EPG_CLEANUP(epg_spec_free) epg_spec spec = {.id = NULL};
    return get_spec(&self->base, &spec, err);
}

static epg_code ask_for_plan(library *self, const char *split, uint64_t seed, uint64_t count, epg_buffer *scenarios,
                             evo_episode *episodes, epg_error *err)
{
    EPG_AUTO_FREE evo_out *outs = epg_alloc_array(count, sizeof *outs);
    for (uint64_t i = 0; i < count; i++) {
        outs[i].buffer = &scenarios[i];
        episodes[i].scenario_out = &outs[i];
    }
    evo_error error = {.text = ""};
    if (self->table->episodes(self->benchmark, split, seed, count, episodes, &error) != 0) {
        return fault(self, "episodes", &error, err);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (scenarios[i].size == 0) {
            epg_value_put_null(&scenarios[i]);
        }
        if (epg_value_check(epg_buffer_span(&scenarios[i]), &epg_value_policy_limits, err) != EPG_OK) {
            return epg_fail_as(err, EPG_ERR_BENCHMARK, "%s: episodes: scenario of Episode %llu", self->name,
                               (unsigned long long)i);
        }
    }
    return EPG_OK;
}

static epg_code plan(epg_benchmark *benchmark, const char *split, uint64_t seed, uint64_t count, epg_episode_spec *out,
                     epg_error *err)
{
    library *self = (library *)benchmark;
    if (self->table->episodes == NULL) {
        EPG_TRY(know_spec(self, err));
        return epg_default_episodes(self->id, split, seed, count, out, err);
    }
    EPG_AUTO_FREE evo_episode *episodes = epg_alloc_array(count, sizeof *episodes);
    EPG_AUTO_FREE epg_buffer *scenarios = epg_alloc_array(count, sizeof *scenarios);
    epg_code code = ask_for_plan(self, split, seed, count, scenarios, episodes, err);
    for (uint64_t i = 0; i < count; i++) {
        if (code == EPG_OK) {
            out[i] = (epg_episode_spec){episodes[i].environment_seed, scenarios[i]};
        } else {
            epg_buffer_free(&scenarios[i]);
        }
    }
    return code;
}

/* --- Environments --- */

static epg_code open_environment(epg_benchmark *benchmark, const epg_episode_spec *episode, epg_environment **out,
                                 epg_error *err)
{
    library *self = (library *)benchmark;
    evo_episode told = {.environment_seed = episode->environment_seed,
                        .scenario = epg_library_value(epg_buffer_span(&episode->scenario))};
    evo_error error = {.text = ""};
    void *environment = epg_alloc(self->table->environment_size);
    if (self->table->make(self->benchmark, &told, environment, &error) != 0) {
        free(environment);
        return fault(self, "make", &error, err);
    }
    library_environment *made = epg_alloc(sizeof *made);
    *made = (library_environment){{benchmark}, environment};
    *out = &made->base;
    return EPG_OK;
}

static epg_code reset(epg_environment *environment, epg_buffer *observation, epg_error *err)
{
    library_environment *self = (library_environment *)environment;
    const library *of = (const library *)environment->benchmark;
    evo_out out = {observation};
    evo_error error = {.text = ""};
    epg_buffer_clear(observation);
    return of->table->reset(self->environment, &out, &error) == 0 ? EPG_OK : fault(of, "reset", &error, err);
}

static epg_code step(epg_environment *environment, epg_span action, epg_step *out, epg_error *err)
{
    library_environment *self = (library_environment *)environment;
    const library *of = (const library *)environment->benchmark;
    evo_out observation = {&out->observation};
    evo_out metrics = {&out->metrics};
    evo_step told = {.observation = &observation, .metrics = &metrics};
    evo_error error = {.text = ""};
    epg_step_clear(out);
    epg_patience_hush(true); /* a Policy was waited for a moment ago */
    int failed = of->table->step(self->environment, epg_library_value(action), &told, &error);
    epg_patience_hush(false);
    if (failed != 0) {
        return fault(of, "step", &error, err);
    }
    out->reward = told.reward;
    out->terminated = told.terminated;
    out->truncated = told.truncated;
    out->invalid_action = told.invalid_action;
    if (told.invalid_action) {
        out->invalid_reason =
            epg_strdup(told.invalid_reason == NULL ? "the Environment refused it" : told.invalid_reason);
    }
    if (out->metrics.size == 0) {
        epg_value_put_null(&out->metrics);
    }
    return EPG_OK;
}

static epg_code close_environment(epg_environment *environment, epg_error *err)
{
    library_environment *self = (library_environment *)environment;
    const library *of = (const library *)environment->benchmark;
    evo_error error = {.text = ""};
    bool closed = of->table->close == NULL || of->table->close(self->environment, &error) == 0;
    free(self->environment);
    free(self);
    return closed ? EPG_OK : fault(of, "close", &error, err);
}

/* --- Feedback --- */

static epg_code ask_for_feedback(library *self, const epg_records *records, epg_feedback *out, epg_error *err)
{
    evo_records read = {.records = records};
    evo_feedback told = {.feedback = out, .content = {&out->content}};
    evo_error error = {.text = ""};
    int failed = self->table->feedback(self->benchmark, &read, &told, &error);
    if (read.code != EPG_OK) {
        return epg_fail(err, read.code, "%s", read.err.text);
    }
    if (failed != 0) {
        return fault(self, "feedback", &error, err);
    }
    if (!told.scored) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "%s: feedback gave no score", self->name);
    }
    if (out->content.size == 0) {
        epg_value_put_null(&out->content);
    }
    return EPG_OK;
}

static epg_code feedback(epg_benchmark *benchmark, const epg_records *records, epg_feedback *out, epg_error *err)
{
    library *self = (library *)benchmark;
    if (self->table->feedback == NULL) {
        EPG_TRY(know_spec(self, err));
        const epg_mean_return rule = {.metric = "mean_return", .failed_return = self->failed_return};
        return epg_mean_return_feedback(&rule, records, out, err);
    }
    epg_feedback made = {.score = 0.0};
    epg_code code = ask_for_feedback(self, records, &made, err);
    if (code != EPG_OK) {
        epg_feedback_free(&made);
        return code;
    }
    *out = made;
    return EPG_OK;
}

/* --- Loading --- */

static void destroy(epg_benchmark *benchmark)
{
    library *self = (library *)benchmark;
    if (self->table != NULL && self->table->destroy != NULL) {
        self->table->destroy(self->benchmark);
    }
    if (self->handle != NULL) {
        (void)dlclose(self->handle);
    }
    free(self->name);
    free(self->id);
    free(self);
}

static epg_code load(library *self, const char *path, const evo_benchmark **out, epg_error *err)
{
    if (access(path, R_OK) != 0) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "there is no library %s that can be read: name the path of one, as in lib:./mine.so", path);
    }
    self->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (self->handle == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s can't be loaded: %s", path, dlerror());
    }
    void *symbol = dlsym(self->handle, "evopolicygym_benchmark_entry");
    if (symbol == NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "%s is no Benchmark: it has no function evopolicygym_benchmark_entry (see "
                        "evopolicygym/benchmark.h)",
                        path);
    }
    evo_benchmark_entry *entry = NULL;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer to a function's */
    const evo_benchmark *table = entry(&epg_library_host);
    if (table == NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s: evopolicygym_benchmark_entry returned nothing", path);
    }
    if (table->abi != EVOPOLICYGYM_BENCHMARK_ABI) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "%s was built for Benchmark ABI %u, this Host speaks %d: build it again with "
                        "this version's evopolicygym/benchmark.h",
                        path, (unsigned)table->abi, EVOPOLICYGYM_BENCHMARK_ABI);
    }
    if (table->size != sizeof *table || table->spec == NULL || table->make == NULL || table->reset == NULL ||
        table->step == NULL) {
        return epg_fail(err, EPG_ERR_USAGE,
                        "%s: its table must have size %zu and the functions spec, make, reset and "
                        "step",
                        path, sizeof *table);
    }
    *out = table;
    return EPG_OK;
}

static epg_code open_loaded(library *self, const evo_benchmark *table, const char *parameters, epg_error *err)
{
    evo_error error = {.text = ""};
    if (table == NULL) {
        return epg_fail(err, EPG_ERR_INTERNAL, "%s has no table", self->name);
    }
    if (table->open == NULL && parameters != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s takes no parameters", self->name);
    }
    if (table->open != NULL && table->open(parameters, &self->benchmark, &error) != 0) {
        return fault(self, "open", &error, err);
    }
    self->table = table;
    return EPG_OK;
}

epg_code epg_library_open(const char *text, const char *root, epg_benchmark **out, epg_error *err)
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
    EPG_AUTO_FREE char *name = epg_strdup(text);
    char *parameters = strchr(name, '?');
    if (parameters != NULL) {
        *parameters++ = '\0';
    }
    if (name[0] == '\0') {
        return epg_fail(err, EPG_ERR_USAGE, "lib: needs the path of a shared library, as in lib:./mine.so");
    }
    /* Always with a slash: a bare name would be looked for among the system's libraries. */
    EPG_AUTO_FREE char *path = root != NULL && name[0] != '/' ? epg_format("%s/%s", root, name)
                               : strchr(name, '/') != NULL    ? epg_strdup(name)
                                                              : epg_format("./%s", name);
    library *self = epg_alloc(sizeof *self);
    self->base.vtable = &vtable;
    self->name = epg_format("lib:%s", name);
    const evo_benchmark *table = NULL;
    epg_code code = load(self, path, &table, err);
    code = code == EPG_OK ? open_loaded(self, table, parameters, err) : code;
    if (code != EPG_OK) {
        destroy(&self->base);
        return code;
    }
    *out = &self->base;
    return EPG_OK;
}

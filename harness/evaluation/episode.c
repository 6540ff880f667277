#include "evaluation/episode.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/files.h"
#include "system/io.h"
#include "system/tree.h"

enum { RECORD_PIECE = 64 * 1024 };

static const char scratch_name[] = "episode";

void epg_episode_outcome_free(epg_episode_outcome *outcome)
{
    free(outcome->detail);
    epg_policy_end_free(&outcome->policy);
    *outcome = (epg_episode_outcome){0};
}

/* What one Episode holds while it runs. */
typedef struct episode {
    const epg_episode_setup *setup;
    epg_episode_outcome outcome;
    epg_environment *environment;
    epg_policy *policy;
    epg_step step;
    epg_buffer observation;
    epg_buffer record;
    bool scratch_made;
} episode;

static epg_code benchmark_fault(const char *call, epg_error *err)
{
    if (err->code == EPG_ERR_INTERRUPTED) {
        return err->code;
    }
    return epg_fail_as(err, EPG_ERR_BENCHMARK, "%s", call);
}

static int64_t begin_call(const episode *self, const char *call)
{
    return epg_watchdog_begin(self->setup->watchdog, call);
}

static void end_call(episode *self, int64_t began)
{
    self->outcome.environment_ns += epg_watchdog_end(self->setup->watchdog, began);
}

static epg_code check_observation(epg_span observation, const char *call, epg_error *err)
{
    if (epg_value_check(observation, &epg_value_policy_limits, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_BENCHMARK, "%s gave an observation that a Policy can't be sent", call);
    }
    return EPG_OK;
}

static epg_code open_environment(episode *self, const epg_episode_spec *spec, epg_error *err)
{
    epg_benchmark *benchmark = self->setup->benchmark;
    int64_t began = begin_call(self, "make_environment");
    epg_code code = benchmark->vtable->open(benchmark, spec, &self->environment, err);
    end_call(self, began);
    if (code != EPG_OK) {
        return benchmark_fault("make_environment", err);
    }
    began = begin_call(self, "Environment.reset");
    code = benchmark->vtable->reset(self->environment, &self->observation, err);
    end_call(self, began);
    if (code != EPG_OK) {
        return benchmark_fault("Environment.reset", err);
    }
    EPG_TRY(check_observation(epg_buffer_span(&self->observation), "Environment.reset", err));
    epg_record_put_observation(&self->record, epg_buffer_span(&self->observation));
    return EPG_OK;
}

/* scratch/episode is the Policy's own directory, scratch/episode/program the Program. */
static epg_code make_scratch(episode *self, epg_error *err)
{
    EPG_AUTO_CLOSE int own = -1;
    EPG_AUTO_CLOSE int program = -1;
    if (epg_io_mkdir(self->setup->scratch, scratch_name, 0755) != 0) {
        (void)epg_fail_errno(err, errno, "can't make the Episode's directory");
        return epg_fail_as(err, EPG_ERR_EXECUTION, "scratch");
    }
    self->scratch_made = true;
    if (epg_dir_open(self->setup->scratch, scratch_name, &own, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_EXECUTION, "scratch");
    }
    if (epg_io_mkdir(own, "program", 0700) != 0) {
        (void)epg_fail_errno(err, errno, "can't make the Program's directory");
        return epg_fail_as(err, EPG_ERR_EXECUTION, "scratch");
    }
    if (epg_dir_open(own, "program", &program, err) != EPG_OK ||
        epg_program_materialise(self->setup->program, program, 0444, 0555, false, err) != EPG_OK) {
        return epg_fail_as(err, EPG_ERR_EXECUTION, "scratch");
    }
    return EPG_OK;
}

static void put_context(const epg_spec *spec, uint64_t policy_seed, epg_buffer *out)
{
    epg_value_put_map(out, 5);
    epg_value_put_key(out, "action_space");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->action_space));
    epg_value_put_key(out, "environment_parameters");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->environment_parameters));
    epg_value_put_key(out, "metadata");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->metadata));
    epg_value_put_key(out, "observation_space");
    (void)epg_buffer_append_span(out, epg_buffer_span(&spec->observation_space));
    epg_value_put_key(out, "policy_seed");
    epg_value_put_u64(out, policy_seed);
}

static void policy_failed(episode *self, epg_policy_failure failure, epg_policy_cause cause, const char *detail)
{
    self->outcome.end.failure = failure;
    self->outcome.cause = cause;
    free(self->outcome.detail);
    self->outcome.detail = detail != NULL ? epg_strdup(detail) : NULL;
}

/* The Policy's deadline: what is left of its limit, from now. */
static int64_t policy_deadline(const episode *self, int64_t now)
{
    return now + (self->setup->policy_limit_ns - self->outcome.policy_ns);
}

static epg_code start_policy(episode *self, uint64_t policy_seed, bool *goes_on, epg_error *err)
{
    EPG_AUTO_FREE char *path = epg_format("%s/%s/program", self->setup->scratch_path, scratch_name);
    EPG_AUTO_BUFFER context = {0};
    epg_policy_reply reply = {0};
    EPG_TRY(epg_policy_begin(self->setup->guest, path, &self->policy, err));
    put_context(self->setup->spec, policy_seed, &context);
    int64_t began = epg_monotonic_ns();
    EPG_TRY(epg_policy_start(self->policy, epg_buffer_span(&context), policy_deadline(self, began), &reply, err));
    self->outcome.policy_ns += epg_monotonic_ns() - began;
    *goes_on = reply.failure == EPG_POLICY_OK;
    if (!*goes_on) {
        policy_failed(self, reply.failure, reply.cause, reply.detail);
    }
    return EPG_OK;
}

static epg_code check_step(episode *self, epg_error *err)
{
    const epg_step *step = &self->step;
    if (!isfinite(step->reward)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "Environment.step gave a reward that is not finite");
    }
    EPG_TRY(check_observation(epg_buffer_span(&step->observation), "Environment.step", err));
    double sum = self->outcome.end.reward + step->reward;
    if (!isfinite(sum)) {
        return epg_fail(err, EPG_ERR_BENCHMARK, "Environment.step of %s: the Episode's rewards sum to infinity",
                        self->setup->spec->id);
    }
    self->outcome.end.reward = sum;
    self->outcome.end.steps++;
    return EPG_OK;
}

/* One turn: act, then step. *goes_on turns false when the Episode is over. */
static epg_code take_turn(episode *self, epg_span observation, bool *goes_on, epg_error *err)
{
    epg_policy_reply reply = {0};
    int64_t began = epg_monotonic_ns();
    EPG_TRY(epg_policy_act(self->policy, observation, policy_deadline(self, began), &reply, err));
    self->outcome.policy_ns += epg_monotonic_ns() - began;
    *goes_on = false;
    if (reply.failure != EPG_POLICY_OK) {
        policy_failed(self, reply.failure, reply.cause, reply.detail);
        return EPG_OK;
    }
    epg_step_clear(&self->step);
    began = begin_call(self, "Environment.step");
    epg_code code = self->setup->benchmark->vtable->step(self->environment, reply.action, &self->step, err);
    end_call(self, began);
    if (code != EPG_OK) {
        return benchmark_fault("Environment.step", err);
    }
    if (self->step.invalid_action) {
        policy_failed(self, EPG_POLICY_INVALID_ACTION, EPG_CAUSE_REFUSED_ACTION, self->step.invalid_reason);
        return EPG_OK;
    }
    EPG_TRY(check_step(self, err));
    epg_record_put_step(&self->record, reply.action, &self->step);
    *goes_on = !self->step.terminated && !self->step.truncated;
    return EPG_OK;
}

/* What the turns of the Episode took so far: the Policy's time and the Environment's. */
static int64_t turns_ns(const episode *self)
{
    return self->outcome.policy_ns + self->outcome.environment_ns;
}

static epg_code play(episode *self, epg_error *err)
{
    const epg_episode_setup *setup = self->setup;
    epg_span observation = epg_buffer_span(&self->observation);
    for (uint64_t i = 0; i < setup->spec->max_episode_steps; i++) {
        bool goes_on = false;
        int64_t before = turns_ns(self);
        EPG_TRY(take_turn(self, observation, &goes_on, err));
        epg_company_turn(setup->company, turns_ns(self) - before);
        if (self->record.size >= RECORD_PIECE) {
            EPG_TRY(setup->sink(setup->sink_context, &self->record, err));
        }
        if (!goes_on) {
            return EPG_OK;
        }
        /* The step's buffer becomes the observation; its old memory serves the next step. */
        epg_buffer spare = self->observation;
        self->observation = self->step.observation;
        self->step.observation = spare;
        observation = epg_buffer_span(&self->observation);
    }
    return epg_fail(err, EPG_ERR_BENCHMARK, "the Environment of %s did not end within its horizon of %llu steps",
                    setup->spec->id, (unsigned long long)setup->spec->max_episode_steps);
}

static epg_code run_to_end(episode *self, const epg_episode_spec *spec, uint64_t policy_seed, epg_error *err)
{
    bool goes_on = false;
    EPG_TRY(open_environment(self, spec, err));
    EPG_TRY(make_scratch(self, err));
    EPG_TRY(start_policy(self, policy_seed, &goes_on, err));
    return goes_on ? play(self, err) : EPG_OK;
}

/* Keeps the first of two faults. */
static void keep_first(epg_code *code, epg_code now, epg_error *err, const epg_error *later)
{
    if (*code == EPG_OK && now != EPG_OK) {
        *code = now;
        *err = *later;
    }
}

/* Closes all that was opened, in the contract's order, whatever happened before. */
static epg_code close_all(episode *self, epg_code code, epg_error *err)
{
    epg_error later = {.text = ""};
    epg_company_rest(self->setup->company);
    if (self->policy != NULL) {
        keep_first(&code, epg_policy_finish(self->policy, &self->outcome.policy, &later), err, &later);
        self->policy = NULL;
    }
    if (self->environment != NULL) {
        int64_t began = begin_call(self, "Environment.close");
        epg_code closed = self->setup->benchmark->vtable->close(self->environment, &later);
        end_call(self, began);
        self->environment = NULL;
        if (closed != EPG_OK) {
            keep_first(&code, benchmark_fault("Environment.close", &later), err, &later);
        }
    }
    if (self->scratch_made && epg_tree_remove(self->setup->scratch, scratch_name, 0, &later) != EPG_OK) {
        keep_first(&code, epg_fail_as(&later, EPG_ERR_EXECUTION, "scratch"), err, &later);
    }
    return code;
}

epg_code epg_episode_run(const epg_episode_setup *setup, const epg_episode_spec *spec, uint64_t policy_seed,
                         epg_episode_outcome *out, epg_error *err)
{
    epg_error local = {.text = ""};
    if (err == NULL) {
        err = &local; /* faults are wrapped on the way, which needs a place */
    }
    episode self = {.setup = setup};
    int64_t began = epg_monotonic_ns();
    epg_record_put_head(&self.record, spec, policy_seed);
    epg_code code = close_all(&self, run_to_end(&self, spec, policy_seed, err), err);
    self.outcome.total_ns = epg_monotonic_ns() - began;
    if (code == EPG_OK) {
        epg_record_put_end(&self.record, &self.outcome.end);
        code = setup->sink(setup->sink_context, &self.record, err);
    }
    epg_step_free(&self.step);
    epg_buffer_free(&self.observation);
    epg_buffer_free(&self.record);
    if (code != EPG_OK) {
        epg_episode_outcome_free(&self.outcome);
        return code;
    }
    *out = self.outcome;
    return EPG_OK;
}

#include "cli/setup.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
    JOBS_MAX = 256,
    MEMORY_MIN = 64 << 20 /* less than an interpreter and its modules may need */
};

void epg_setup_free(epg_setup *setup)
{
    free(setup->python);
    free(setup->benchmark_python);
    free(setup->guest_root);
    *setup = (epg_setup){0};
}

static unsigned usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 1;
    }
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > JOBS_MAX ? JOBS_MAX : (unsigned)count;
}

static epg_code read_profile(const epg_options *options, epg_profile *out, epg_error *err)
{
    const epg_option *execution = epg_option_find(options, "execution");
    bool acknowledged = epg_option_given(options, "allow-unsafe-process");
    *out = EPG_PROFILE_SANDBOX;
    if (execution->given) {
        EPG_TRY(epg_profile_parse(execution->value, out, err));
    }
    if (*out == EPG_PROFILE_PROCESS && !acknowledged) {
        return epg_fail(
            err, EPG_ERR_USAGE,
            "--execution process gives Policies all your rights; add --allow-unsafe-process to accept that");
    }
    return EPG_OK;
}

epg_code epg_setup_jobs(const epg_options *options, unsigned *jobs, epg_error *err)
{
    unsigned long long number = *jobs;
    EPG_TRY(epg_option_u64(options, "jobs", 1, JOBS_MAX, &number, err));
    *jobs = (unsigned)number;
    return EPG_OK;
}

epg_code epg_setup_read(const epg_options *options, epg_setup *out, epg_error *err)
{
    EPG_CLEANUP(epg_setup_free) epg_setup setup = {0};
    double limit = 60;
    setup.pool.jobs = usable_cores();
    EPG_TRY(epg_setup_jobs(options, &setup.pool.jobs, err));
    EPG_TRY(epg_option_seconds(options, "environment-timeout", &limit, err));
    EPG_TRY(read_profile(options, &setup.pool.execution.profile, err));
    if (!epg_option_given(options, "benchmark")) {
        return epg_fail(err, EPG_ERR_USAGE, "name a Benchmark: --benchmark cartpole");
    }
    EPG_TRY(epg_python_find(epg_option_text(options, "python"), &setup.python, err));
    EPG_TRY(epg_guest_root_find(&setup.guest_root, err));
    setup.pool.benchmark = epg_option_text(options, "benchmark");
    const char *other = epg_option_text(options, "benchmark-python");
    if (other != NULL && epg_python_find(other, &setup.benchmark_python, err) != EPG_OK) {
        return epg_fail_within(err, "--benchmark-python");
    }
    setup.pool.call_limit_ns = epg_duration_ns(limit);
    setup.pool.benchmark_options =
        (epg_benchmark_options){.python = setup.benchmark_python, .call_limit_ns = setup.pool.call_limit_ns};
    EPG_TRY(epg_option_bytes(options, "benchmark-memory", MEMORY_MIN, &setup.pool.benchmark_options.memory_bytes, err));
    setup.pool.execution.python = setup.python;
    setup.pool.execution.guest_root = setup.guest_root;
    setup.pool.execution.preload = epg_option_text(options, "preload");
    if (setup.pool.execution.preload != NULL &&
        epg_python_imports(setup.python, setup.pool.execution.preload, err) != EPG_OK) {
        return epg_fail_within(err, "--preload");
    }
    setup.pool.execution.limits = epg_guest_default_limits;
    EPG_TRY(epg_option_bytes(options, "policy-memory", MEMORY_MIN, &setup.pool.execution.limits.memory_bytes, err));
    EPG_TRY(epg_execution_check(&setup.pool.execution, err));
    *out = setup;
    setup = (epg_setup){0};
    return EPG_OK;
}

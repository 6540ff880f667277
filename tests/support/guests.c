#include "support/guests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/support.h"

const char *epg_test_python(void)
{
    static char *path; /* a shim takes half a second to look through */
    epg_error err = {0};
    if (path == NULL && epg_python_find(getenv("EPG_PYTHON"), &path, &err) != EPG_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return path;
}

void epg_test_guest_prepare(epg_test_guest *self)
{
    epg_error err = {0};
    char *root = NULL;
    epg_assert_ok(epg_guest_root_find(&root, &err), &err);
    *self = (epg_test_guest){
        .execution = {.profile = EPG_PROFILE_PROCESS, .python = epg_test_python(), .guest_root = root},
        .directory = epg_test_directory(),
    };
    self->execution.limits = epg_guest_default_limits;
}

void epg_test_guest_start(epg_test_guest *self, int cancel)
{
    epg_error err = {0};
    epg_assert_ok(epg_guest_open(&self->execution, cancel, &self->guest, &err), &err);
}

void epg_test_guest_open(epg_test_guest *self)
{
    epg_test_guest_prepare(self);
    epg_test_guest_start(self, -1);
}

void epg_test_guest_close(epg_test_guest *self)
{
    epg_guest_close(self->guest);
    epg_test_directory_free(self->directory);
    free((void *)(uintptr_t)self->execution.guest_root);
    *self = (epg_test_guest){0};
}

void epg_test_venv(const char *directory, const char *python)
{
    EPG_AUTO_FREE char *home = epg_strdup(python);
    *strrchr(home, '/') = '\0';
    EPG_AUTO_FREE char *config = epg_format("home = %s\ninclude-system-site-packages = false\n", home);
    epg_test_write_text(directory, "pyvenv.cfg", config);
    epg_test_write_text(directory, "bin/empty", "");
    EPG_AUTO_FREE char *link = epg_format("%s/bin/python3", directory);
    ck_assert_int_eq(symlink(python, link), 0);
    for (int minor = 9; minor < 30; minor++) { /* whichever version it is */
        EPG_AUTO_FREE char *library = epg_format("lib/python3.%d/site-packages", minor);
        EPG_AUTO_FREE char *threaded = epg_format("%s/threaded.py", library);
        EPG_AUTO_FREE char *quiet = epg_format("%s/quiet.py", library);
        epg_test_write_text(directory, threaded,
                            "import threading, time\n"
                            "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n");
        epg_test_write_text(directory, quiet, "import os\nMADE_BY = os.getpid()\n");
    }
}

char *epg_test_guest_program(epg_test_guest *self, const char *source)
{
    self->episodes++;
    EPG_AUTO_FREE char *file = epg_format("%u/program/policy.py", self->episodes);
    epg_test_write_text(self->directory, file, source);
    return epg_format("%s/%u/program", self->directory, self->episodes);
}

epg_policy *epg_test_policy_begin(epg_test_guest *self, const char *source)
{
    epg_error err = {0};
    epg_policy *policy = NULL;
    EPG_AUTO_FREE char *path = epg_test_guest_program(self, source);
    epg_assert_ok(epg_policy_begin(self->guest, path, &policy, &err), &err);
    return policy;
}

void epg_test_policy_context(uint64_t seed, epg_buffer *out)
{
    static const char *const maps[] = {"action_space", "environment_parameters", "metadata", "observation_space"};
    epg_value_put_map(out, EPG_COUNT(maps) + 1);
    for (size_t i = 0; i < EPG_COUNT(maps); i++) {
        epg_value_put_key(out, maps[i]);
        epg_value_put_map(out, 1);
        epg_value_put_key(out, "name");
        epg_value_put_text(out, maps[i]);
    }
    epg_value_put_key(out, "policy_seed");
    epg_value_put_u64(out, seed);
}

epg_policy_reply epg_test_policy_start(epg_policy *policy, uint64_t seed, double seconds)
{
    epg_error err = {0};
    epg_policy_reply reply = {0};
    EPG_AUTO_BUFFER context = {0};
    epg_test_policy_context(seed, &context);
    int64_t deadline = epg_deadline_after_seconds(seconds);
    epg_assert_ok(epg_policy_start(policy, epg_buffer_span(&context), deadline, &reply, &err), &err);
    return reply;
}

epg_policy_reply epg_test_policy_act(epg_policy *policy, epg_span observation, double seconds)
{
    epg_error err = {0};
    epg_policy_reply reply = {0};
    epg_assert_ok(epg_policy_act(policy, observation, epg_deadline_after_seconds(seconds), &reply, &err), &err);
    return reply;
}

char *epg_test_policy_ask(epg_policy *policy)
{
    epg_span text;
    epg_policy_reply reply = epg_test_policy_act(policy, epg_span_text("N"), 30);
    ck_assert_msg(reply.failure == EPG_POLICY_OK, "%s: %s", epg_policy_cause_name(reply.cause), reply.detail);
    ck_assert(epg_value_get_string(reply.action, &text));
    return epg_strndup((const char *)text.data, text.size);
}

void epg_test_policy_finish(epg_policy *policy, epg_policy_end *end)
{
    epg_error err = {0};
    epg_policy_end own;
    epg_assert_ok(epg_policy_finish(policy, end != NULL ? end : &own, &err), &err);
    if (end == NULL) {
        epg_policy_end_free(&own);
    }
}

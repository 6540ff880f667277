/* `evopolicygym doctor`: what this machine can do for a Run, what it can't, why, and what to do about it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agents/probe.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/cli.h"
#include "execution/cgroup.h"
#include "execution/probe.h"
#include "guest/guest.h"
#include "programs/store.h"
#include "system/tree.h"

#define SCHEMA "evopolicygym/doctor/v1"

static const char usage[] =
    "Usage: evopolicygym doctor [--python PATH] [--json]\n"
    "\n"
    "Tells what works on this machine and what does not, why, and what to do. Containment is not looked up but\n"
    "tried: a probe is started in the way in which Policies are, and attempts what must fail.\n"
    "Ends with 1 when something that a Run needs does not work.";
static const char examples[] = "  evopolicygym doctor\n"
                               "  evopolicygym doctor --python ~/venvs/policies/bin/python --json\n";

typedef enum state { GOOD, NOTE, BAD } state;
static const char *const state_names[] = {[GOOD] = "ok", [NOTE] = "note", [BAD] = "failed"};
static const char *const state_marks[] = {[GOOD] = "  ok    ", [NOTE] = "  note  ", [BAD] = "  FAILED"};

enum { FINDINGS_MAX = 160, TEXT_COLUMN = 27 };

typedef struct finding {
    const char *topic; /* static */
    state how;
    char *name;
    char *text;
    char *advice; /* NULL: none */
} finding;

typedef struct report {
    finding all[FINDINGS_MAX];
    size_t count;
} report;

static void report_free(report *self)
{
    for (size_t i = 0; i < self->count; i++) {
        free(self->all[i].name);
        free(self->all[i].text);
        free(self->all[i].advice);
    }
}

/* Takes `text` and `advice` over. */
static void add(report *self, const char *topic, state how, const char *name, char *text, char *advice)
{
    if (self->count == FINDINGS_MAX) {
        free(text);
        free(advice);
        return;
    }
    self->all[self->count++] =
        (finding){.topic = topic, .how = how, .name = epg_strdup(name), .text = text, .advice = advice};
}

/* --- Containment. --- */

static void put_checks(report *self, const char *topic, const epg_probe *probe)
{
    for (size_t i = 0; i < probe->count; i++) {
        const epg_probe_check *check = &probe->checks[i];
        add(self, topic, check->holds ? GOOD : BAD, check->name, epg_strdup(check->holds ? "holds" : check->detail),
            check->holds ? NULL : epg_containment_advice());
    }
}

static void look_at_containment(report *self, const epg_execution *execution)
{
    epg_probe probe;
    epg_error cell = {.text = ""};
    epg_error plain = {.text = ""};
    bool cells = epg_containment_probe(execution, true, &probe, &cell) == EPG_OK;
    if (cells) {
        put_checks(self, "containment", &probe);
        return;
    }
    if (epg_containment_probe(execution, false, &probe, &plain) == EPG_OK) {
        put_checks(self, "containment", &probe);
        add(self, "containment", NOTE, "cells",
            epg_format("%s: every Policy process gets an interpreter and a sandbox of its own, which is as safe and "
                       "slower",
                       cell.text),
            NULL);
        return;
    }
    add(self, "containment", BAD, "sandbox", epg_strdup(plain.text), epg_containment_advice());
}

static void look_at_limits(report *self)
{
    const epg_cgroup_places *places = epg_cgroup_find();
    struct rlimit files = {0};
    const char *version = places->unified ? "version 2" : "version 1";
    const char *advice = "to get control groups: systemd-run --user --scope -p Delegate=yes evopolicygym ...";
    if (places->memory != NULL) {
        add(self, "limits", GOOD, "memory", epg_format("by control groups (%s), in %s", version, places->memory), NULL);
    } else {
        add(self, "limits", NOTE, "memory",
            epg_strdup("no control group can be had: the limit holds for each process of a Policy alone"),
            epg_strdup(advice));
    }
    add(self, "limits", GOOD, "processes", epg_strdup("by a limit of each sandbox's own user namespace"), NULL);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    enum { DESCRIPTORS_ENOUGH = 1024 };
    bool enough = files.rlim_cur >= DESCRIPTORS_ENOUGH;
    add(self, "limits", enough ? GOOD : NOTE, "descriptors",
        epg_format("%llu for the Host", (unsigned long long)files.rlim_cur),
        enough ? NULL : epg_strdup("raise them: ulimit -n 4096"));
}

/* --- The rest. --- */

static bool look_at_python(report *self, const char *name, char **python, char **root)
{
    epg_error err = {.text = ""};
    bool found = epg_python_find(name, python, &err) == EPG_OK;
    add(self, "python", found ? GOOD : BAD, "interpreter", epg_strdup(found ? *python : err.text),
        found ? NULL : epg_strdup("install python3, or name one with --python"));
    bool installed = epg_guest_root_find(root, &err) == EPG_OK;
    add(self, "python", installed ? GOOD : BAD, "guest package", epg_strdup(installed ? *root : err.text), NULL);
    return found && installed;
}

static void look_at_store(report *self)
{
    epg_error err = {.text = ""};
    EPG_AUTO_FREE char *path = NULL;
    EPG_AUTO_CLOSE int directory = -1;
    epg_store *store = NULL;
    epg_code code = epg_tree_temporary("epg-doctor-", &path, &directory, &err);
    if (code == EPG_OK) {
        EPG_AUTO_FREE char *repository = epg_format("%s/store", path);
        code = epg_store_create(repository, &store, &err);
        epg_store_close(store);
        (void)epg_tree_remove(AT_FDCWD, path, 0, NULL);
    }
    add(self, "store", code == EPG_OK ? GOOD : BAD, "git repository",
        epg_strdup(code == EPG_OK ? "can be made and synced" : err.text), NULL);
}

static void look_at_agents(report *self)
{
    epg_error err = {.text = ""};
    epg_adapter_entry *entries = NULL;
    size_t count = 0;
    size_t found = 0;
    if (epg_adapter_list(&entries, &count, &err) != EPG_OK) {
        add(self, "agents", BAD, "adapters", epg_strdup(err.text), NULL);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        EPG_AUTO_FREE char *why = NULL;
        if (entries[i].error.code != EPG_OK) {
            add(self, "agents", NOTE, entries[i].adapter.name, epg_strdup(entries[i].error.text), NULL);
            continue;
        }
        char *executable = epg_probe_find(&entries[i].adapter, NULL, getenv("PATH"), &why);
        if (executable != NULL) {
            add(self, "agents", GOOD, entries[i].adapter.name, executable, NULL);
            found++;
        }
    }
    epg_adapter_list_free(entries, count);
    if (found == 0) {
        add(self, "agents", NOTE, "none found", epg_strdup("no coding agent that this knows of is in PATH"),
            epg_strdup("install one ('evopolicygym agent list'), or run a command of your own"));
    }
}

static void look_at_disk(report *self, const char *name, const char *path)
{
    const unsigned long long enough = 1ULL << 30;
    struct statvfs info;
    if (statvfs(path, &info) != 0) {
        add(self, "disk", BAD, name, epg_format("%s: %s", path, strerror(errno)), NULL);
        return;
    }
    unsigned long long available = (unsigned long long)info.f_bavail * info.f_frsize;
    bool writable = access(path, W_OK | X_OK) == 0;
    state how = !writable ? BAD : available < enough || info.f_favail == 0 ? NOTE : GOOD;
    add(self, "disk", how, name,
        epg_format("%s: %.1f GiB free%s", path, (double)available / (double)(1ULL << 30),
                   writable ? "" : ", can't be written"),
        how == NOTE ? epg_strdup("make room: Runs keep every submission") : NULL);
}

static void look_at_disks(report *self)
{
    const char *temporary = getenv("TMPDIR");
    EPG_AUTO_FREE char *here = getcwd(NULL, 0);
    if (here != NULL) {
        look_at_disk(self, "here", here);
    }
    look_at_disk(self, "temporary", temporary != NULL && *temporary == '/' ? temporary : "/tmp");
}

/* --- Telling. --- */

static void put_json(const report *self, bool healthy, epg_buffer *out)
{
    epg_json_writer writer;
    epg_json_begin(&writer, out, 2);
    epg_json_object(&writer, NULL);
    epg_json_array(&writer, "findings");
    for (size_t i = 0; i < self->count; i++) {
        const finding *one = &self->all[i];
        epg_json_object(&writer, NULL);
        epg_json_put_text(&writer, "advice", one->advice);
        epg_json_put_text(&writer, "name", one->name);
        epg_json_put_text(&writer, "state", state_names[one->how]);
        epg_json_put_text(&writer, "text", one->text);
        epg_json_put_text(&writer, "topic", one->topic);
        epg_json_end(&writer);
    }
    epg_json_end(&writer);
    epg_json_put_bool(&writer, "healthy", healthy);
    epg_json_put_text(&writer, "schema", SCHEMA);
    epg_json_put_text(&writer, "version", EPG_VERSION);
    epg_json_end(&writer);
    epg_json_finish(&writer);
}

static void put_text(const report *self, bool healthy, epg_buffer *out)
{
    const char *topic = "";
    for (size_t i = 0; i < self->count; i++) {
        const finding *one = &self->all[i];
        if (strcmp(topic, one->topic) != 0) {
            topic = one->topic;
            (void)epg_buffer_format(out, "%s%s\n", i == 0 ? "" : "\n", topic);
        }
        (void)epg_buffer_format(out, "%s %-17s ", state_marks[one->how], one->name);
        epg_fill_text(one->text, TEXT_COLUMN, TEXT_COLUMN, out);
        if (one->advice != NULL) {
            (void)epg_buffer_format(out, "%*s-> ", TEXT_COLUMN, "");
            epg_fill_text(one->advice, TEXT_COLUMN + 3, TEXT_COLUMN + 3, out);
        }
    }
    (void)epg_buffer_text(out, healthy ? "\nAll that a Run needs works here.\n"
                                       : "\nSomething that a Run needs does not work here.\n");
}

static epg_code run_doctor(epg_options *options, bool *negative, epg_error *err)
{
    EPG_CLEANUP(report_free) report found = {.count = 0};
    EPG_AUTO_FREE char *python = NULL;
    EPG_AUTO_FREE char *root = NULL;
    EPG_AUTO_BUFFER out = {0};
    if (look_at_python(&found, epg_option_text(options, "python"), &python, &root)) {
        const epg_execution execution = {
            .profile = EPG_PROFILE_SANDBOX, .python = python, .guest_root = root, .limits = epg_guest_default_limits};
        look_at_containment(&found, &execution);
    }
    look_at_limits(&found);
    look_at_store(&found);
    look_at_agents(&found);
    look_at_disks(&found);
    for (size_t i = 0; i < found.count; i++) {
        *negative = *negative || found.all[i].how == BAD;
    }
    if (epg_option_given(options, "json")) {
        put_json(&found, !*negative, &out);
    } else {
        put_text(&found, !*negative, &out);
    }
    return epg_cli_print(&out, err);
}

static const epg_option table[] = {
    {.name = "python",
     .kind = EPG_OPTION_VALUE,
     .value_name = "PATH",
     .help = "interpreter of the Policies (CPython 3.9 or newer; python3)"},
    {.name = "json", .kind = EPG_OPTION_FLAG, .help = "print one JSON document"},
    EPG_OPTIONS_END,
};

const epg_command epg_cmd_doctor = {
    .name = "doctor",
    .summary = "tell what works on this machine, and what to do",
    .usage = usage,
    .examples = examples,
    .wanted = "doctor takes no operand: evopolicygym doctor [--json]",
    .options = {table},
    .least = 0,
    .most = 0,
    .run = run_doctor,
};

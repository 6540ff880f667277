#include "execution/agent_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "execution/box.h"
#include "execution/launcher.h"
#include "execution/paths.h"

const epg_guest_limits epg_agent_default_limits = {
    .memory_bytes = UINT64_C(8) << 30,
    .processes = 2048,
    .cpu_seconds = 0,
    .descriptors = 65536,
    .file_bytes = UINT64_C(8) << 30,
    .scratch_bytes = UINT64_C(2) << 30,
    .scratch_inodes = 0,
    .log_bytes = 0,
};

struct epg_agent_box {
    epg_box box;
    epg_network network;
    epg_guest_limits limits;
    epg_cgroup group;
    epg_words environment;
    char *command;
    char *directory;
    epg_words given; /* what it may write: taken back at the end where it had to be given away */
    epg_words argv;
    int left; /* readable: how many processes the Agent left behind */
};

/* --- The network. --- */

epg_code epg_network_parse(const char *text, epg_network *out, epg_error *err)
{
    static const char prefix[] = "proxy=";
    epg_network network = {.kind = EPG_NETWORK_NONE};
    if (strcmp(text, "none") == 0 || strcmp(text, "host") == 0) {
        network.kind = *text == 'h' ? EPG_NETWORK_HOST : EPG_NETWORK_NONE;
        *out = network;
        return EPG_OK;
    }
    const char *address = epg_starts_with(text, prefix) ? text + strlen(prefix) : "";
    const char *colon = strrchr(address, ':');
    uint64_t port = 0;
    if (colon == NULL || colon == address || !epg_parse_u64(colon + 1, strlen(colon + 1), UINT16_MAX, &port) ||
        port == 0 || (size_t)(colon - address) >= sizeof network.host) {
        return epg_fail(err, EPG_ERR_USAGE, "unknown network '%.200s': use none, host or proxy=HOST:PORT", text);
    }
    size_t size = (size_t)(colon - address);
    bool bracketed = address[0] == '[' && address[size - 1] == ']'; /* an IPv6 address */
    network.kind = EPG_NETWORK_PROXY;
    network.port = (uint16_t)port;
    memcpy(network.host, address + bracketed, size - 2 * (size_t)bracketed);
    for (const char *byte = network.host; *byte != '\0'; byte++) {
        if (*byte <= ' ' || *byte >= 0x7f || *byte == '/' || *byte == '@') {
            return epg_fail(err, EPG_ERR_USAGE, "a proxy is named by HOST:PORT alone, as in proxy=127.0.0.1:3128");
        }
    }
    *out = network;
    return EPG_OK;
}

char *epg_network_text(const epg_network *network)
{
    switch (network->kind) {
    case EPG_NETWORK_NONE:
        return epg_strdup("none");
    case EPG_NETWORK_HOST:
        return epg_strdup("host");
    case EPG_NETWORK_PROXY:
        break;
    }
    return epg_format(strchr(network->host, ':') != NULL ? "proxy=[%s]:%u" : "proxy=%s:%u", network->host,
                      network->port);
}

static void add_network(epg_agent_box *self)
{
    if (self->network.kind != EPG_NETWORK_HOST) {
        EPG_BOX_OPTION(&self->box, "--unshare-net");
    }
    if (self->network.kind == EPG_NETWORK_PROXY) {
        epg_words_add(&self->box.outside, "--proxy");
        epg_words_add(&self->box.outside, self->network.host);
        epg_words_take(&self->box.outside, epg_format("%u", self->network.port));
        epg_words_add(&self->box.inside, "--proxy");
        epg_words_take(&self->box.inside, epg_format("%u", self->network.port));
    }
}

static bool names_a_proxy(const char *variable)
{
    static const char *const names[] = {"HTTP_PROXY=", "HTTPS_PROXY=", "ALL_PROXY=", "NO_PROXY=",
                                        "http_proxy=", "https_proxy=", "all_proxy=", "no_proxy="};
    for (size_t i = 0; i < EPG_COUNT(names); i++) {
        if (epg_starts_with(variable, names[i])) {
            return true;
        }
    }
    return false;
}

static void make_environment(epg_agent_box *self, const char *const *given)
{
    static const char *const names[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                        "http_proxy", "https_proxy", "all_proxy"};
    bool proxy = self->network.kind == EPG_NETWORK_PROXY;
    for (; given != NULL && *given != NULL; given++) {
        if (!proxy || !names_a_proxy(*given)) {
            epg_words_add(&self->environment, *given);
        }
    }
    for (size_t i = 0; proxy && i < EPG_COUNT(names); i++) {
        epg_words_take(&self->environment, epg_format("%s=http://127.0.0.1:%u", names[i], self->network.port));
    }
}

/* --- What is shown. --- */

static void give(epg_agent_box *self, const char *path, bool writable)
{
    epg_box_give(&self->box, path, path, writable);
    epg_words_add(&self->given, path);
}

static epg_code must_be_there(const char *path, const char *what, epg_error *err)
{
    if (*path != '/' || access(path, F_OK) != 0) {
        return epg_fail_errno(err, *path != '/' ? EINVAL : errno, "can't show the Agent its %s '%.256s'", what, path);
    }
    return EPG_OK;
}

static epg_code show_own(epg_agent_box *self, const epg_agent_sandbox *what, epg_error *err)
{
    EPG_TRY(must_be_there(what->workspace, "workspace", err));
    give(self, what->workspace, false);
    for (const char *const *name = what->writable; name != NULL && *name != NULL; name++) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", what->workspace, *name);
        EPG_TRY(must_be_there(path, "directory", err));
        give(self, path, true);
    }
    if (what->home != NULL) {
        EPG_TRY(must_be_there(what->home, "home", err));
        give(self, what->home, true);
    }
    if (what->session_socket != NULL) {
        EPG_TRY(must_be_there(what->session_socket, "session", err));
        give(self, what->session_socket, true);
    }
    return EPG_OK;
}

static epg_code show_others(epg_agent_box *self, const epg_agent_sandbox *what, epg_error *err)
{
    EPG_CLEANUP(epg_words_free) epg_words paths = {0};
    for (const char *const *path = what->read_only; path != NULL && *path != NULL; path++) {
        EPG_AUTO_FREE char *real = NULL;
        struct stat info;
        if (**path != '/' || access(*path, F_OK) != 0) {
            continue;
        }
        EPG_TRY(epg_paths_follow(*path, &paths, &real, err));
        if (stat(real, &info) == 0 && S_ISDIR(info.st_mode) && !epg_path_is_system(real)) {
            EPG_TRY(epg_path_may_show(real, *path, err));
        }
        epg_paths_add(&paths, real);
    }
    for (size_t i = 0; i < paths.count; i++) {
        epg_box_show_here(&self->box, paths.texts[i]);
    }
    return EPG_OK;
}

static void add_limit(epg_box *box, const char *name, uint64_t value)
{
    if (value > 0) {
        epg_words_add(&box->inside, "--limit");
        epg_words_add(&box->inside, name);
        epg_words_take(&box->inside, epg_format("%" PRIu64, value));
    }
}

static void add_limits(epg_agent_box *self)
{
    const epg_guest_limits *limits = &self->limits;
    int joins[2];
    epg_cgroup_make(limits->memory_bytes, limits->processes, &self->group);
    int count = epg_cgroup_open_joins(&self->group, joins);
    for (int i = 0; i < count; i++) {
        epg_box_add_fd(&self->box, joins[i], EPG_FD_JOIN + i);
        epg_words_add(&self->box.outside, "--join");
        epg_words_take(&self->box.outside, epg_format("%d", EPG_FD_JOIN + i));
    }
    add_limit(&self->box, "processes", limits->processes);
    add_limit(&self->box, "descriptors", limits->descriptors);
    add_limit(&self->box, "file", limits->file_bytes);
    add_limit(&self->box, "cpu", limits->cpu_seconds);
    if (self->group.memory == NULL) {
        add_limit(&self->box, "data", limits->memory_bytes);
    }
}

static epg_code add_first(epg_agent_box *self, epg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return epg_fail_errno(err, errno, "can't make a pipe for a sandbox");
    }
    self->left = ends[0];
    epg_box_add_fd(&self->box, ends[1], EPG_FD_LEFT);
    EPG_BOX_OPTION(&self->box, "--as-pid-1");
    epg_words_add(&self->box.inside, "--first");
    epg_words_add(&self->box.inside, "yes");
    return EPG_OK;
}

/* --- The command. --- */

static epg_code find_command(epg_agent_box *self, const epg_agent_sandbox *what, epg_error *err)
{
    const char *name = what->argv[0];
    if (strchr(name, '/') != NULL) {
        self->command = *name == '/' ? epg_strdup(name) : epg_format("%s/%s", what->workspace, name);
        return EPG_OK;
    }
    EPG_AUTO_FREE char *all = epg_strdup(what->search_path != NULL ? what->search_path : "/usr/bin:/bin");
    char *rest = NULL;
    for (char *entry = strtok_r(all, ":", &rest); entry != NULL; entry = strtok_r(NULL, ":", &rest)) {
        EPG_AUTO_FREE char *path = epg_format("%s/%s", entry, name);
        if (*entry == '/' && access(path, X_OK) == 0) {
            self->command = EPG_TAKE(path);
            return EPG_OK;
        }
    }
    return epg_fail(err, EPG_ERR_NOT_FOUND, "there is no program '%.256s' in the search path", name);
}

static epg_code fill(epg_agent_box *self, const epg_agent_sandbox *what, epg_error *err)
{
    epg_box *box = &self->box;
    EPG_TRY(find_command(self, what, err));
    EPG_TRY(epg_box_open(box, EPG_BOX_AGENT, err));
    self->directory = epg_strdup(what->workspace);
    box->directory = self->directory;
    EPG_BOX_OPTION(box, "--hostname", "agent");
    add_network(self);
    epg_box_show_system(box, EPG_BOX_AGENT);
    epg_box_scratch(box, "/tmp", self->limits.scratch_bytes);
    epg_box_scratch(box, "/dev/shm", self->limits.scratch_bytes);
    EPG_TRY(show_others(self, what, err));
    EPG_TRY(show_own(self, what, err));
    add_limits(self);
    EPG_TRY(add_first(self, err));
    make_environment(self, what->environment);
    epg_words_add(&self->argv, self->command);
    for (size_t i = 1; what->argv[i] != NULL; i++) {
        epg_words_add(&self->argv, what->argv[i]);
    }
    const epg_spawn inner = {.argv = (const char *const *)self->argv.texts,
                             .environment = (const char *const *)self->environment.texts,
                             .working_directory = -1,
                             .fds = what->fds,
                             .fd_count = what->fd_count,
                             .new_session = true,
                             .die_with_parent = true};
    return epg_box_finish(box, &inner, EPG_FILTER_AGENT, false, err);
}

epg_code epg_agent_box_open(const epg_agent_sandbox *what, epg_agent_box **out, epg_error *err)
{
    epg_agent_box *self = epg_alloc(sizeof *self);
    *self = (epg_agent_box){
        .box = {.ready = -1, .messages = -1}, .network = what->network, .limits = what->limits, .left = -1};
    epg_code code = fill(self, what, err);
    if (code != EPG_OK) {
        epg_agent_box_close(self);
        return code == EPG_ERR_UNAVAILABLE ? epg_fail_within(err, "containment unavailable") : code;
    }
    *out = self;
    return EPG_OK;
}

const epg_spawn *epg_agent_box_spawn(const epg_agent_box *box)
{
    return &box->box.spawn;
}

epg_code epg_agent_box_started(epg_agent_box *box, int64_t deadline, epg_error *err)
{
    return epg_box_await(&box->box, deadline, err);
}

/* Where id-mapped mounts can't be had, `contain outside` gave files to the Agent's user; nobody else has that user. */
static void take_back(char *root, uid_t from)
{
    char *const roots[] = {root, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    for (const FTSENT *entry = NULL; walk != NULL && (entry = fts_read(walk)) != NULL;) {
        if (entry->fts_info != FTS_DP && entry->fts_info != FTS_NS && entry->fts_statp->st_uid == from) {
            (void)!lchown(entry->fts_path, 0, 0); /* what can't be taken back harms its owner only */
        }
    }
    if (walk != NULL) {
        (void)fts_close(walk);
    }
}

void epg_agent_box_close(epg_agent_box *box)
{
    if (box == NULL) {
        return;
    }
    for (size_t i = 0; box->box.drop != 0 && i < box->given.count; i++) {
        take_back(box->given.texts[i], box->box.drop);
    }
    epg_close_cleanup(&box->left);
    epg_cgroup_remove(&box->group);
    epg_box_close(&box->box);
    epg_words_free(&box->environment);
    epg_words_free(&box->given);
    epg_words_free(&box->argv);
    free(box->command);
    free(box->directory);
    free(box);
}

bool epg_agent_box_left(const epg_agent_box *box, unsigned *count)
{
    unsigned told = 0;
    if (read(box->left, &told, sizeof told) != (ssize_t)sizeof told) {
        return false;
    }
    *count = told;
    return true;
}

const char *epg_agent_box_ended_by(const epg_agent_box *box, const epg_exit *exit)
{
    enum { KILLED = 128 + 9, CPU = 128 + 24, CALL = 128 + 31 }; /* as bwrap passes a signal on */
    epg_cgroup_events events;
    epg_cgroup_read(&box->group, &events);
    if (events.memory_kills > 0 && exit->code != 0) {
        return "memory";
    }
    if (exit->code == CPU || (exit->code == KILLED && box->limits.cpu_seconds > 0)) {
        return "cpu";
    }
    if (exit->code == CALL) {
        return "seccomp";
    }
    return events.processes_denied > 0 && exit->code != 0 ? "processes" : NULL;
}

void epg_agent_box_describe(const epg_agent_box *box, epg_json_writer *writer, const char *key)
{
    const epg_guest_limits *limits = &box->limits;
    const char *group = box->group.unified ? "cgroup-v2" : "cgroup-v1";
    EPG_AUTO_FREE char *network = epg_network_text(&box->network);
    epg_json_object(writer, key);
    epg_json_put_bool(writer, "contained", true);
    epg_json_array(writer, "degraded");
    if (box->group.memory == NULL && limits->memory_bytes > 0) {
        epg_json_put_text(writer, NULL,
                          "no memory control group can be had: memory_bytes holds for each process of the Agent alone");
    }
    epg_json_end(writer);
    epg_json_object(writer, "limits");
    epg_describe_limit(writer, "cpu_seconds", limits->cpu_seconds, "rlimit");
    epg_describe_limit(writer, "descriptors", limits->descriptors, "rlimit");
    epg_describe_limit(writer, "file_bytes", limits->file_bytes, "rlimit");
    epg_describe_limit(writer, "memory_bytes", limits->memory_bytes, box->group.memory != NULL ? group : "rlimit");
    epg_describe_limit(writer, "processes", limits->processes, box->group.processes != NULL ? group : "rlimit");
    epg_describe_limit(writer, "scratch_bytes", limits->scratch_bytes, "mount");
    epg_describe_limit(writer, "scratch_inodes", 0, NULL);
    epg_json_end(writer);
    epg_json_put_text(writer, "network", network);
    epg_json_put_text(writer, "profile", epg_profile_name(EPG_PROFILE_SANDBOX));
    epg_json_end(writer);
}

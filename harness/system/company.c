#include "system/company.h"

#include <dirent.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "system/children.h"

enum {
    MEMBERS = 4,
    LOOK_AFTER = 32,     /* turns, before the first look whether they are quick */
    LOOK_AT_MOST = 4096, /* turns from one look to the next, where no core is free */
    DESCENDANTS = 256    /* freed with a member, at most */
};
static const int64_t quick_ns = EPG_MILLISECOND; /* a turn's mean, from which on a switch is not worth a thought */
static const int64_t late_ns = 10 * EPG_MILLISECOND;

struct epg_company {
    pid_t members[MEMBERS];
    size_t count;
    cpu_set_t whole; /* what the caller may use */
    bool single;     /* that is one core, or not known */
    int claim;       /* the socket that has the core's name; -1: they are free */
    size_t core;
    bool late;
    uint64_t turns, look_after;
    int64_t took_ns;
};

epg_company *epg_company_new(void)
{
    epg_company *company = epg_alloc(sizeof *company);
    *company = (epg_company){.claim = -1, .look_after = LOOK_AFTER};
    company->single =
        sched_getaffinity(0, sizeof company->whole, &company->whole) != 0 || CPU_COUNT(&company->whole) < 2;
    return company;
}

void epg_company_enter(epg_company *company, pid_t pid)
{
    if (company != NULL && company->count < MEMBERS) {
        company->members[company->count++] = pid;
    }
}

void epg_company_leave(epg_company *company, pid_t pid)
{
    for (size_t i = 0; company != NULL && i < company->count; i++) {
        if (company->members[i] == pid) {
            company->members[i] = company->members[--company->count];
            return;
        }
    }
}

bool epg_company_bound(const epg_company *company)
{
    return company != NULL && company->claim >= 0;
}

/* --- Binding. --- */

/* The socket that holds the core's name; -1: somebody has it. */
static int claim_core(size_t core)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "evopolicygym/core/%zu", core);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (claim >= 0 && bind(claim, (const struct sockaddr *)&name, size) != 0) {
        epg_close_cleanup(&claim);
        return -1;
    }
    return claim;
}

/* The core that the caller is on, else any other. */
static bool claim_any(epg_company *company)
{
    int here = sched_getcpu();
    for (size_t i = 0; i < CPU_SETSIZE && company->claim < 0; i++) {
        company->core = ((size_t)(here < 0 ? 0 : here) + i) % CPU_SETSIZE;
        if (CPU_ISSET(company->core, &company->whole)) {
            company->claim = claim_core(company->core);
        }
    }
    return company->claim >= 0;
}

/* Whether the thread may use exactly these cores. */
static bool uses(pid_t thread, const cpu_set_t *cores)
{
    cpu_set_t now;
    return sched_getaffinity(thread, sizeof now, &now) == 0 && CPU_EQUAL(&now, cores);
}

static void free_thread(const epg_company *company, pid_t thread)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(company->core, &one);
    if (uses(thread, &one)) {
        (void)sched_setaffinity(thread, sizeof company->whole, &company->whole);
    }
}

static void free_threads(const epg_company *company, pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;) {
        long thread = strtol(entry->d_name, NULL, 10);
        if (thread > 0) {
            free_thread(company, (pid_t)thread);
        }
    }
    if (threads != NULL) {
        (void)closedir(threads);
    }
}

/* All whom we bound, and what they made while they were. */
static void set_free(epg_company *company)
{
    EPG_AUTO_PIDS members = {0};
    if (company->claim < 0) {
        return;
    }
    epg_pid_list_add(&members, getpid());
    for (size_t i = 0; i < company->count; i++) {
        epg_pid_list_add(&members, company->members[i]);
    }
    for (size_t i = 0; i < members.count; i++) {
        free_threads(company, members.pids[i]);
        if (members.count < DESCENDANTS) {
            epg_children_list(members.pids[i], &members);
        }
    }
    epg_close_cleanup(&company->claim);
    company->claim = -1;
}

static void gather(epg_company *company)
{
    cpu_set_t one;
    bool willing = uses(0, &company->whole);
    for (size_t i = 0; i < company->count; i++) {
        willing = willing && uses(company->members[i], &company->whole);
    }
    if (!willing || !claim_any(company)) {
        return;
    }
    CPU_ZERO(&one);
    CPU_SET(company->core, &one);
    bool bound = sched_setaffinity(0, sizeof one, &one) == 0;
    for (size_t i = 0; i < company->count; i++) {
        bound = bound && sched_setaffinity(company->members[i], sizeof one, &one) == 0;
    }
    if (!bound) {
        set_free(company);
    }
}

/* --- Turns. --- */

void epg_company_turn(epg_company *company, int64_t took_ns)
{
    if (epg_company_bound(company) && took_ns > late_ns) {
        epg_company_late(company);
    }
    if (company == NULL || company->single || company->late || company->claim >= 0) {
        return;
    }
    company->took_ns += took_ns;
    if (++company->turns < company->look_after) {
        return;
    }
    if (company->took_ns < (int64_t)company->turns * quick_ns) {
        gather(company);
    }
    company->look_after = company->look_after < LOOK_AT_MOST ? 2 * company->look_after : LOOK_AT_MOST;
    company->turns = 0;
    company->took_ns = 0;
}

int64_t epg_company_patience(const epg_company *company, int64_t deadline)
{
    if (!epg_company_bound(company)) {
        return deadline;
    }
    int64_t soon = epg_deadline_after_ns(late_ns);
    return soon < deadline ? soon : deadline;
}

void epg_company_late(epg_company *company)
{
    if (company != NULL) {
        company->late = true;
        set_free(company);
    }
}

void epg_company_rest(epg_company *company)
{
    if (company != NULL) {
        set_free(company);
        company->late = false;
        company->turns = 0;
        company->took_ns = 0;
        company->look_after = LOOK_AFTER;
    }
}

void epg_company_free(epg_company *company)
{
    if (company != NULL) {
        set_free(company);
        free(company);
    }
}

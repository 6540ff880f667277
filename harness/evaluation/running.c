#include "evaluation/running.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

enum { CALL_ROOM = 32, NAME_ROOM = 224 };

struct epg_running {
    char call[CALL_ROOM]; /* NUL-padded, as the name; whoever reads them trusts neither */
    char name[NAME_ROOM];
};

static epg_running *map(int descriptor)
{
    void *page = mmap(NULL, sizeof(epg_running), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return page != MAP_FAILED ? page : NULL;
}

epg_running *epg_running_new(int *descriptor)
{
    *descriptor = memfd_create("evopolicygym-running", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*descriptor < 0) {
        return NULL;
    }
    bool ready = ftruncate(*descriptor, (off_t)sizeof(epg_running)) == 0 &&
                 fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    return ready ? map(*descriptor) : NULL;
}

epg_running *epg_running_join(void)
{
    int seals = fcntl(EPG_RUNNING_DESCRIPTOR, F_GET_SEALS); /* of anything else than such memory there are none */
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
        return NULL;
    }
    epg_running *running = map(EPG_RUNNING_DESCRIPTOR);
    (void)close(EPG_RUNNING_DESCRIPTOR);
    return running;
}

void epg_running_close(epg_running *running)
{
    if (running != NULL) {
        (void)munmap(running, sizeof *running);
    }
}

void epg_running_name(epg_running *running, const char *benchmark)
{
    if (running != NULL) {
        strncpy(running->name, benchmark, NAME_ROOM - 1);
    }
}

void epg_running_enter(epg_running *running, const char *call)
{
    if (running != NULL && running->name[0] != '\0') {
        strncpy(running->call, call != NULL ? call : "", CALL_ROOM);
    }
}

const char *epg_running_benchmark(const epg_running *running)
{
    return running != NULL ? running->name : "";
}

char *epg_running_text(const epg_running *running)
{
    if (running == NULL || running->call[0] == '\0') {
        return NULL;
    }
    EPG_AUTO_FREE char *name = epg_printable(running->name, strnlen(running->name, NAME_ROOM));
    EPG_AUTO_FREE char *call = epg_printable(running->call, strnlen(running->call, CALL_ROOM));
    return epg_format("%s: %s", name, call);
}

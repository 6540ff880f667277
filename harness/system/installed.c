#include "system/installed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "system/process.h"

char *epg_installed_find(const char *name, const char *in_source)
{
    EPG_AUTO_FREE char *own = epg_own_executable();
    EPG_AUTO_FREE char *beside = epg_format("%.*s/../share/evopolicygym/%s", (int)(strrchr(own, '/') - own), own, name);
    EPG_AUTO_FREE char *source = epg_format("%s/%s", EPG_SOURCE_ROOT, in_source);
    EPG_AUTO_FREE char *installed = epg_format("%s/%s", EPG_DATA_DIRECTORY, name);
    const char *const places[] = {beside, source, installed};
    for (size_t i = 0; i < EPG_COUNT(places); i++) {
        char *real = access(places[i], R_OK) == 0 ? realpath(places[i], NULL) : NULL;
        if (real != NULL) {
            return real;
        }
    }
    return NULL;
}

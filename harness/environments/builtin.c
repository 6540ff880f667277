/* The table of the built-in Benchmarks. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "environments/kinds.h"

static epg_code open_cartpole(const char *parameters, epg_benchmark **out, epg_error *err)
{
    return epg_simple_open(&epg_cartpole_kind, parameters, out, err);
}

static const epg_builtin builtins[] = {
    {"cartpole", "keep a pole upright on a cart: push left or right", NULL, open_cartpole},
};

const epg_builtin *epg_builtin_benchmarks(size_t *count)
{
    *count = EPG_COUNT(builtins);
    return builtins;
}

const epg_builtin *epg_builtin_find(const char *name)
{
    for (size_t i = 0; i < EPG_COUNT(builtins); i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            return &builtins[i];
        }
    }
    return NULL;
}

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "execution/inside/inside.h"

int epg_contain_failed(const char *what)
{
    enum { FAILED = 125 };
    (void)fprintf(stderr, "contain: %s: %s\n", what, strerror(errno));
    return FAILED;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } parts[] = {
        {"outside", epg_contain_outside},
        {"inside", epg_contain_inside},
        {"probe", epg_contain_probe},
    };
    for (size_t i = 0; argc > 1 && i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            return parts[i].run(argc - 1, argv + 1);
        }
    }
    (void)fputs("contain: the Host starts this by itself; it is not for use by hand\n", stderr);
    return 2;
}

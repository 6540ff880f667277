#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

epg_code epg_cli_parse(epg_options *options, int argc, char **argv, const char *usage, const char *examples, bool *done,
                       epg_error *err)
{
    *done = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            EPG_AUTO_BUFFER text = {0};
            (void)epg_buffer_format(&text, "%s\n\nOptions:\n", usage);
            epg_options_help(options, &text);
            if (examples != NULL) {
                (void)epg_buffer_format(&text, "\nExamples:\n%s", examples);
            }
            *done = true;
            return epg_cli_print(&text, err);
        }
    }
    return epg_options_parse(options, argc, argv, err);
}

epg_code epg_cli_print(const epg_buffer *text, epg_error *err)
{
    if (fwrite(epg_buffer_cstr(text), 1, text->size, stdout) != text->size || fflush(stdout) != 0) {
        return epg_fail_errno(err, errno, "can't write to standard output");
    }
    return EPG_OK;
}

bool epg_cli_is_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) == 1 && getenv("NO_COLOR") == NULL && (term == NULL || strcmp(term, "dumb") != 0);
}

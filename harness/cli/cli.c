#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Prose is filled into lines; what is laid out by hand stays as it is: the synopsis, which ends with the first blank
 * line, and lines that begin with a blank. */
static void put_usage(const char *usage, epg_buffer *out)
{
    EPG_AUTO_BUFFER paragraph = {0};
    bool prose = false;
    for (const char *line = usage; line != NULL;) {
        size_t size = strcspn(line, "\n");
        bool filled = prose && size > 0 && line[0] != ' ';
        if (!filled && paragraph.size > 0) {
            epg_fill_text(epg_buffer_cstr(&paragraph), 0, 0, out);
            epg_buffer_clear(&paragraph);
        }
        (void)epg_buffer_format(filled ? &paragraph : out, "%.*s\n", (int)size, line);
        prose = prose || size == 0;
        line = line[size] == '\n' ? line + size + 1 : NULL;
    }
    if (paragraph.size > 0) {
        epg_fill_text(epg_buffer_cstr(&paragraph), 0, 0, out);
    }
}

epg_code epg_cli_parse(epg_options *options, int argc, char **argv, const char *usage, const char *examples, bool *done,
                       epg_error *err)
{
    *done = false;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            EPG_AUTO_BUFFER text = {0};
            put_usage(usage, &text);
            (void)epg_buffer_byte(&text, '\n');
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

epg_code epg_cli_no_command(const char *group, const char *word, const char *const *known, size_t count, epg_error *err)
{
    EPG_AUTO_FREE char *shown = epg_printable(word, strlen(word));
    const char *nearest = epg_nearest_word(word, known, count);
    if (nearest != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "%s has no command \"%s\"; did you mean \"%s\"?", group, shown, nearest);
    }
    EPG_AUTO_BUFFER list = {0};
    for (size_t i = 0; i < count; i++) {
        (void)epg_buffer_format(&list, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", known[i]);
    }
    return epg_fail(err, EPG_ERR_USAGE, "%s has no command \"%s\"; there are %s", group, shown, epg_buffer_cstr(&list));
}

epg_code epg_cli_print(const epg_buffer *text, epg_error *err)
{
    if (fwrite(epg_buffer_cstr(text), 1, text->size, stdout) != text->size || fflush(stdout) != 0) {
        return epg_fail_errno(err, errno, "can't write to standard output");
    }
    return EPG_OK;
}

bool epg_cli_is_live(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) == 1 && (term == NULL || strcmp(term, "dumb") != 0);
}

bool epg_cli_is_terminal(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    return epg_cli_is_live(fd) && (no_color == NULL || *no_color == '\0');
}

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

static epg_code teach(const epg_command *command, const epg_options *options, epg_error *err)
{
    EPG_AUTO_BUFFER text = {0};
    put_usage(command->usage, &text);
    if (options != NULL) {
        (void)epg_buffer_byte(&text, '\n');
        epg_options_help(options, &text);
    }
    if (command->examples != NULL) {
        (void)epg_buffer_format(&text, "\nExamples:\n%s", command->examples);
    }
    return epg_cli_print(&text, err);
}

bool epg_cli_asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
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

static epg_code run_member(const epg_command *group, int argc, char **argv, bool *negative, epg_error *err)
{
    enum { MEMBERS_MAX = 16 };
    const char *known[MEMBERS_MAX];
    size_t count = 0;
    if (argc == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "%s", group->wanted);
    }
    if (epg_cli_asks_for_help(argv[0]) || strcmp(argv[0], "help") == 0) {
        return teach(group, NULL, err);
    }
    for (; count < MEMBERS_MAX && group->members[count] != NULL; count++) {
        known[count] = group->members[count]->name;
        if (strcmp(known[count], argv[0]) == 0) {
            return epg_cli_run(group->members[count], argc - 1, argv + 1, negative, err);
        }
    }
    return epg_cli_no_command(group->name, argv[0], known, count, err);
}

static epg_code run_command(const epg_command *command, int argc, char **argv, bool *negative, epg_error *err)
{
    static const epg_option help[] = {
        {.name = "help", .short_name = 'h', .kind = EPG_OPTION_FLAG, .help = "print this help"}, EPG_OPTIONS_END};
    EPG_CLEANUP(epg_options_free) epg_options options = {0};
    for (size_t i = 0; i < EPG_CLI_TABLES && command->options[i] != NULL; i++) {
        epg_options_add(&options, command->options[i]);
    }
    epg_options_add(&options, help);
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (epg_cli_asks_for_help(argv[i])) {
            return teach(command, &options, err);
        }
    }
    EPG_TRY(epg_options_parse(&options, argc, argv, err));
    if (options.operand_count < command->least || options.operand_count > command->most ||
        (options.rest_count > 0 && !command->takes_rest)) {
        return epg_fail(err, EPG_ERR_USAGE, "%s", command->wanted);
    }
    return command->run(&options, negative, err);
}

epg_code epg_cli_run(const epg_command *command, int argc, char **argv, bool *negative, epg_error *err)
{
    if (command->words != NULL) {
        return command->words(argc, argv, negative, err);
    }
    return command->members != NULL ? run_member(command, argc, argv, negative, err)
                                    : run_command(command, argc, argv, negative, err);
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

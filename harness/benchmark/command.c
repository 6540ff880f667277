/* Benchmarks by a command line: "cmd:./my-benchmark --flag". */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "benchmark/external.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Takes one word from *at, unquoted, to `to`; returns what follows it there. NULL: a quote is left open. */
static char *take_word(const char **at, char *to)
{
    const char *from = *at;
    char quote = '\0';
    for (; *from != '\0' && (quote != '\0' || !is_blank(*from)); from++) {
        if (quote == '\0' && (*from == '\'' || *from == '"')) {
            quote = *from;
        } else if (*from == quote) {
            quote = '\0';
        } else if (*from == '\\' && quote != '\'' && from[1] != '\0' &&
                   (quote == '\0' || strchr("\\\"$`", from[1]) != NULL)) {
            *to++ = *++from;
        } else {
            *to++ = *from;
        }
    }
    *to++ = '\0';
    *at = from;
    return quote == '\0' ? to : NULL;
}

epg_code epg_command_words(const char *text, char ***words, epg_error *err)
{
    size_t size = strlen(text);
    size_t most = size / 2 + 2; /* every word but the last takes a byte and a blank */
    /* One allocation: the array, then the texts, which are no longer than what they are made of. */
    char **array = epg_alloc(most * sizeof *array + size + 2);
    char *to = (char *)(array + most);
    size_t count = 0;
    for (const char *at = text;;) {
        while (is_blank(*at)) {
            at++;
        }
        if (*at == '\0') {
            break;
        }
        array[count++] = to;
        to = take_word(&at, to);
        if (to == NULL) {
            free(array);
            return epg_fail(err, EPG_ERR_USAGE, "cmd: a quote is left open in %s", text);
        }
    }
    if (count == 0 || array[0][0] == '\0') {
        free(array);
        return epg_fail(err, EPG_ERR_USAGE, "cmd: needs a command, as in cmd:./my-benchmark");
    }
    array[count] = NULL;
    *words = array;
    return EPG_OK;
}

epg_code epg_command_open(const char *text, const epg_benchmark_options *options, epg_benchmark **out, epg_error *err)
{
    EPG_AUTO_FREE char **words = NULL;
    EPG_AUTO_FREE char *name = epg_format("cmd:%s", text);
    EPG_TRY(epg_command_words(text, &words, err));
    const epg_external_start start = {
        .name = name,
        .argv = (const char *const *)words,
        .directory = options->source_root,
        .call_limit_ns = options->call_limit_ns,
        .memory_bytes = options->memory_bytes,
        .company = options->company,
    };
    return epg_external_open(&start, out, err);
}

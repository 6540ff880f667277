/* Command-line options: one table a subcommand, in the habits of git and cargo.
 *
 * `--name VALUE`, `--name=VALUE`, `-n VALUE`, `--flag`, `--` ends the options; options and operands may be mixed
 * (except where `stop_at_operand` is set). Anything unknown, given twice, or without its value is EPG_ERR_USAGE with
 * one line that says what to do and, for a misspelt option, the nearest known one. */
#ifndef EPG_BASE_OPTIONS_H
#define EPG_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

typedef enum epg_option_kind { EPG_OPTION_FLAG, EPG_OPTION_VALUE, EPG_OPTION_LIST } epg_option_kind;

typedef struct epg_option {
    const char *name; /* long name without dashes */
    char short_name;  /* 0: none */
    epg_option_kind kind;
    const char *value_name; /* for help: "N", "DIR" */
    const char *help;       /* filled into lines by epg_options_help; NULL hides the option */
    const char *group; /* heading in help that this option and those after it stand under; NULL: as the one before */
    /* results, in an epg_options only; values borrow from argv */
    bool given;
    const char *value;   /* VALUE: the text */
    const char **values; /* LIST: all texts, owned */
    size_t value_count;
} epg_option;

/* The last row of a table. */
#define EPG_OPTIONS_END                                                                                                \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }

/* Zeroed is empty. */
typedef struct epg_options {
    epg_option *rows; /* owned */
    size_t count;
    bool stop_at_operand;
    const char **operands; /* owned array of borrowed texts */
    size_t operand_count;
    const char **rest; /* what stands after `--`, borrowed; NULL when there was no `--` */
    size_t rest_count;
} epg_options;

/* Adds the rows of a table behind those that are there. The table stays as it is: results are in the copies. */
void epg_options_add(epg_options *options, const epg_option *table);
epg_code epg_options_parse(epg_options *options, int argc, char *const argv[], epg_error *err);
void epg_options_free(epg_options *options);

/* Of one option; each aborts on a name that no table has. */
const epg_option *epg_option_find(const epg_options *options, const char *name);
bool epg_option_given(const epg_options *options, const char *name);
const char *epg_option_text(const epg_options *options, const char *name); /* NULL: not given */

/* The option lines of --help, within 80 columns: under "Options:", or group by group under their headings, in the order
 * in which the table first names them. */
void epg_options_help(const epg_options *options, epg_buffer *out);

/* Makes an option that was not given stand as if given with `value` (borrowed; NULL does nothing). */
void epg_option_default(epg_options *options, const char *name, const char *value);

/* Typed readings of a VALUE option; untouched when it was not given. Errors name the option. */
epg_code epg_option_u64(const epg_options *options, const char *name, unsigned long long min, unsigned long long max,
                        unsigned long long *out, epg_error *err);
/* Bytes: a whole number, with K, M, G or T behind it for powers of 1024. */
epg_code epg_option_bytes(const epg_options *options, const char *name, uint64_t min, uint64_t *out, epg_error *err);
epg_code epg_option_seconds(const epg_options *options, const char *name, double *out,
                            epg_error *err); /* > 0, finite */

/* The known word nearest to a misspelt one, NULL when none is near: for "did you mean ...?". */
const char *epg_nearest_word(const char *word, const char *const *known, size_t count);

#endif

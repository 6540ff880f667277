#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* How many letters must change between two words, counted up to 3. */
static size_t word_distance(const char *a, const char *b)
{
    enum { LONGEST = 48 };
    size_t row[LONGEST + 1];
    size_t b_size = strlen(b);
    if (b_size > LONGEST || strlen(a) > LONGEST) {
        return LONGEST;
    }
    for (size_t j = 0; j <= b_size; j++) {
        row[j] = j;
    }
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b_size; j++) {
            size_t changed = diagonal + (a[i] != b[j]);
            size_t least = row[j] < row[j + 1] ? row[j] + 1 : row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < least ? changed : least;
        }
    }
    return row[b_size];
}

/* The only known word that begins as `word` does, for three letters at least. */
static const char *word_begun(const char *word, const char *const *known, size_t count)
{
    enum { ENOUGH = 3 };
    const char *best = NULL;
    size_t longest = ENOUGH - 1;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        while (word[same] != '\0' && word[same] == known[i][same]) {
            same++;
        }
        if (same > longest) {
            best = known[i];
            longest = same;
        } else if (same == longest) {
            best = NULL;
        }
    }
    return best;
}

const char *epg_nearest_word(const char *word, const char *const *known, size_t count)
{
    const char *best = NULL;
    size_t best_distance = strlen(word) / 2 + 1;
    for (size_t i = 0; i < count; i++) {
        size_t distance = word_distance(word, known[i]);
        if (distance < best_distance) {
            best = known[i];
            best_distance = distance;
        }
    }
    return best != NULL ? best : word_begun(word, known, count);
}

/* "benchmark-python" for "python". */
static const char *word_ended(const char *word, const char *const *known, size_t count)
{
    size_t size = strlen(word);
    for (size_t i = 0; i < count; i++) {
        size_t whole = strlen(known[i]);
        if (whole > size + 1 && known[i][whole - size - 1] == '-' && strcmp(known[i] + whole - size, word) == 0) {
            return known[i];
        }
    }
    return NULL;
}

static epg_code unknown_option(const epg_options *options, const char *name, size_t size, epg_error *err)
{
    EPG_AUTO_FREE char *word = epg_strndup(name, size);
    EPG_AUTO_FREE char *shown = epg_printable(word, strlen(word));
    EPG_AUTO_FREE const char **known = epg_alloc_array(options->count, sizeof *known);
    for (size_t i = 0; i < options->count; i++) {
        known[i] = options->rows[i].name;
    }
    const char *nearest = epg_nearest_word(word, known, options->count);
    if (nearest == NULL) {
        nearest = word_ended(word, known, options->count);
    }
    if (nearest != NULL) {
        return epg_fail(err, EPG_ERR_USAGE, "unknown option --%s; did you mean --%s?", shown, nearest);
    }
    return epg_fail(err, EPG_ERR_USAGE, "unknown option --%s; --help lists the options", shown);
}

static epg_option *find_long(const epg_options *options, const char *name, size_t size)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strlen(options->rows[i].name) == size && strncmp(options->rows[i].name, name, size) == 0) {
            return &options->rows[i];
        }
    }
    return NULL;
}

static epg_code give(epg_option *option, const char *value, epg_error *err)
{
    if (option->given && option->kind != EPG_OPTION_LIST) {
        return epg_fail(err, EPG_ERR_USAGE, "--%s is given twice", option->name);
    }
    option->given = true;
    option->value = value;
    if (option->kind == EPG_OPTION_LIST) {
        option->values = epg_grow_array(option->values, option->value_count + 1, sizeof *option->values);
        option->values[option->value_count++] = value;
    }
    return EPG_OK;
}

/* Takes one option that stands at argv[*at], with its value where it has one; moves *at to its last word. */
static epg_code take_option(const epg_options *options, int argc, char *const argv[], int *at, epg_error *err)
{
    const char *word = argv[*at];
    epg_option *option = NULL;
    const char *value = NULL;
    if (word[1] == '-') {
        size_t size = strcspn(word + 2, "=");
        option = find_long(options, word + 2, size);
        if (option == NULL) {
            return unknown_option(options, word + 2, size, err);
        }
        value = word[2 + size] == '=' ? word + 3 + size : NULL;
    } else {
        for (size_t i = 0; i < options->count && option == NULL; i++) {
            option = options->rows[i].short_name == word[1] ? &options->rows[i] : NULL;
        }
        if (option == NULL) {
            EPG_AUTO_FREE char *shown = epg_printable(word, strlen(word));
            return epg_fail(err, EPG_ERR_USAGE, "unknown option %s; --help lists the options", shown);
        }
        value = word[2] != '\0' ? word + 2 : NULL;
    }
    if (option->kind == EPG_OPTION_FLAG) {
        if (value != NULL) {
            return epg_fail(err, EPG_ERR_USAGE, "--%s takes no value", option->name);
        }
        return give(option, NULL, err);
    }
    if (value == NULL) {
        if (*at + 1 >= argc) {
            return epg_fail(err, EPG_ERR_USAGE, "--%s needs a value: --%s %s", option->name, option->name,
                            option->value_name != NULL ? option->value_name : "VALUE");
        }
        value = argv[++*at];
    }
    return give(option, value, err);
}

epg_code epg_options_parse(epg_options *options, int argc, char *const argv[], epg_error *err)
{
    options->operands = epg_alloc_array((size_t)argc + 1, sizeof *options->operands);
    for (int at = 0; at < argc; at++) {
        if (strcmp(argv[at], "--") == 0) {
            options->rest = (const char **)(uintptr_t)(argv + at + 1);
            options->rest_count = (size_t)(argc - at - 1);
            return EPG_OK;
        }
        if (argv[at][0] == '-' && argv[at][1] != '\0') {
            EPG_TRY(take_option(options, argc, argv, &at, err));
            continue;
        }
        options->operands[options->operand_count++] = argv[at];
        if (options->stop_at_operand) {
            for (at++; at < argc; at++) {
                options->operands[options->operand_count++] = argv[at];
            }
        }
    }
    return EPG_OK;
}

void epg_options_add(epg_options *options, const epg_option *table)
{
    size_t count = 0;
    while (table[count].name != NULL) {
        count++;
    }
    options->rows = epg_grow_array(options->rows, options->count + count, sizeof *options->rows);
    memcpy(options->rows + options->count, table, count * sizeof *table);
    options->count += count;
}

void epg_options_free(epg_options *options)
{
    for (size_t i = 0; i < options->count; i++) {
        free(options->rows[i].values);
    }
    free(options->rows);
    free(options->operands);
    *options = (epg_options){0};
}

static epg_option *find_known(const epg_options *options, const char *name)
{
    epg_option *option = find_long(options, name, strlen(name));
    if (option == NULL) {
        (void)fprintf(stderr, "evopolicygym: no option %s in the table\n", name);
        abort();
    }
    return option;
}

const epg_option *epg_option_find(const epg_options *options, const char *name)
{
    return find_known(options, name);
}

bool epg_option_given(const epg_options *options, const char *name)
{
    return find_known(options, name)->given;
}

const char *epg_option_text(const epg_options *options, const char *name)
{
    return find_known(options, name)->value;
}

void epg_option_default(epg_options *options, const char *name, const char *value)
{
    epg_option *option = find_known(options, name);
    if (!option->given && value != NULL) {
        option->given = true;
        option->value = value;
    }
}

static void option_help(const epg_option *option, epg_buffer *out)
{
    enum { COLUMN = 28 };
    size_t start = out->size;
    if (option->short_name != 0) {
        (void)epg_buffer_format(out, "  -%c, --%s", option->short_name, option->name);
    } else {
        (void)epg_buffer_format(out, "  --%s", option->name);
    }
    if (option->kind != EPG_OPTION_FLAG) {
        (void)epg_buffer_format(out, " %s", option->value_name != NULL ? option->value_name : "VALUE");
    }
    size_t width = out->size - start;
    if (width + 2 > COLUMN) {
        (void)epg_buffer_byte(out, '\n');
        width = 0;
    }
    (void)epg_buffer_format(out, "%*s", (int)(COLUMN - width), "");
    epg_fill_text(option->help, COLUMN, COLUMN, out);
}

static const char *group_of(const epg_options *options, size_t at)
{
    for (size_t i = at + 1; i-- > 0;) {
        if (options->rows[i].group != NULL) {
            return options->rows[i].group;
        }
    }
    return "Options";
}

void epg_options_help(const epg_options *options, epg_buffer *out)
{
    EPG_AUTO_FREE bool *told = epg_alloc_array(options->count, sizeof *told);
    const char *gap = "";
    for (size_t first = 0; first < options->count; first++) {
        if (told[first] || options->rows[first].help == NULL) {
            continue;
        }
        const char *group = group_of(options, first);
        (void)epg_buffer_format(out, "%s%s:\n", gap, group);
        gap = "\n";
        for (size_t i = first; i < options->count; i++) {
            if (options->rows[i].help != NULL && strcmp(group_of(options, i), group) == 0) {
                option_help(&options->rows[i], out);
                told[i] = true;
            }
        }
    }
}

epg_code epg_option_u64(const epg_options *options, const char *name, unsigned long long min, unsigned long long max,
                        unsigned long long *out, epg_error *err)
{
    const epg_option *option = epg_option_find(options, name);
    uint64_t value = 0;
    if (!option->given) {
        return EPG_OK;
    }
    if (!epg_parse_u64(option->value, strlen(option->value), max, &value) || value < min) {
        EPG_AUTO_FREE char *shown = epg_printable(option->value, strlen(option->value));
        return epg_fail(err, EPG_ERR_USAGE, "--%s takes a whole number from %llu to %llu, not \"%s\"", name, min, max,
                        shown);
    }
    *out = value;
    return EPG_OK;
}

epg_code epg_option_bytes(const epg_options *options, const char *name, uint64_t min, uint64_t *out, epg_error *err)
{
    static const char units[] = "KMGT";
    const epg_option *option = epg_option_find(options, name);
    uint64_t value = 0;
    if (!option->given) {
        return EPG_OK;
    }
    size_t digits = strspn(option->value, "0123456789");
    const char *unit = option->value + digits;
    const char *found = unit[0] != '\0' && unit[1] == '\0' ? strchr(units, unit[0]) : NULL;
    unsigned shift = found != NULL ? 10 * (unsigned)(found - units + 1) : 0;
    if ((found == NULL && unit[0] != '\0') || !epg_parse_u64(option->value, digits, INT64_MAX >> shift, &value) ||
        value << shift < min) {
        EPG_AUTO_FREE char *shown = epg_printable(option->value, strlen(option->value));
        return epg_fail(err, EPG_ERR_USAGE, "--%s takes a size such as 512M or 4G, at least %lluM, not \"%s\"", name,
                        (unsigned long long)(min >> 20), shown);
    }
    *out = value << shift;
    return EPG_OK;
}

epg_code epg_option_seconds(const epg_options *options, const char *name, double *out, epg_error *err)
{
    const epg_option *option = epg_option_find(options, name);
    double value = 0;
    if (!option->given) {
        return EPG_OK;
    }
    if (!epg_parse_double(option->value, &value) || value <= 0) {
        EPG_AUTO_FREE char *shown = epg_printable(option->value, strlen(option->value));
        return epg_fail(err, EPG_ERR_USAGE, "--%s takes a positive number of seconds, not \"%s\"", name, shown);
    }
    *out = value;
    return EPG_OK;
}

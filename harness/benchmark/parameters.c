#include "benchmark/parameters.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/text.h"

enum { TABLE_MAX = 16 };

static epg_code unknown(const char *benchmark, const char *key, const epg_parameter *table, size_t count,
                        epg_error *err)
{
    EPG_AUTO_FREE char *shown = epg_printable(key, strnlen(key, 100));
    if (count == 0) {
        return epg_fail(err, EPG_ERR_USAGE, "benchmark %s takes no parameters, but \"%s\" was given", benchmark, shown);
    }
    const char *names[TABLE_MAX];
    EPG_AUTO_BUFFER known = {0};
    for (size_t i = 0; i < count; i++) {
        names[i] = table[i].name;
        (void)epg_buffer_format(&known, "%s%s", i == 0 ? "" : ", ", table[i].name);
    }
    const char *nearest = epg_nearest_word(key, names, count);
    return epg_fail(err, EPG_ERR_USAGE, "benchmark %s has no parameter \"%s\"%s%s%s (it has: %s)", benchmark, shown,
                    nearest == NULL ? "" : "; did you mean ", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "?", epg_buffer_cstr(&known));
}

static bool read_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"true", "True", "1", "yes"};
    static const char *const no[] = {"false", "False", "0", "no"};
    for (size_t i = 0; i < EPG_COUNT(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *out = strcmp(text, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

static epg_code wrong(const char *benchmark, const epg_parameter *parameter, const char *value, epg_error *err)
{
    EPG_AUTO_FREE char *shown = epg_printable(value, strnlen(value, 100));
    EPG_AUTO_BUFFER right = {0};
    switch (parameter->kind) {
    case EPG_PARAMETER_BOOL:
        (void)epg_buffer_text(&right, "true or false");
        break;
    case EPG_PARAMETER_REAL:
        (void)epg_buffer_format(&right, "a number from %g to %g", parameter->minimum, parameter->maximum);
        break;
    case EPG_PARAMETER_COUNT:
        (void)epg_buffer_format(&right, "an integer from %.0f to %.0f", parameter->minimum, parameter->maximum);
        break;
    case EPG_PARAMETER_CHOICE:
        for (size_t i = 0; parameter->choices[i] != NULL; i++) {
            (void)epg_buffer_format(&right, "%s%s", i == 0 ? "one of " : ", ", parameter->choices[i]);
        }
        break;
    }
    return epg_fail(err, EPG_ERR_USAGE, "benchmark %s: %s=%s is wrong: give %s", benchmark, parameter->name, shown,
                    epg_buffer_cstr(&right));
}

static bool read_value(const epg_parameter *parameter, const char *value)
{
    switch (parameter->kind) {
    case EPG_PARAMETER_BOOL:
        return read_bool(value, parameter->target);
    case EPG_PARAMETER_REAL: {
        double number = 0.0;
        if (!epg_parse_double(value, &number) || number < parameter->minimum || number > parameter->maximum) {
            return false;
        }
        *(double *)parameter->target = number + 0.0; /* never -0.0, which would have a digest of its own */
        return true;
    }
    case EPG_PARAMETER_COUNT: {
        uint64_t number = 0;
        if (!epg_parse_u64(value, strlen(value), (uint64_t)parameter->maximum, &number) ||
            (double)number < parameter->minimum) {
            return false;
        }
        *(uint64_t *)parameter->target = number;
        return true;
    }
    case EPG_PARAMETER_CHOICE:
        for (int i = 0; parameter->choices[i] != NULL; i++) {
            if (strcmp(parameter->choices[i], value) == 0) {
                *(int *)parameter->target = i;
                return true;
            }
        }
        return false;
    }
    return false;
}

static epg_code parse_one(const char *benchmark, char *item, const epg_parameter *table, size_t count, bool *given,
                          epg_error *err)
{
    char *equals = strchr(item, '=');
    if (equals == NULL || equals == item) {
        EPG_AUTO_FREE char *shown = epg_printable(item, strnlen(item, 100));
        return epg_fail(err, EPG_ERR_USAGE, "benchmark %s: write parameters as ?key=value&key=value, not \"%s\"",
                        benchmark, shown);
    }
    *equals = '\0';
    for (size_t i = 0; i < count; i++) {
        const epg_parameter *parameter = &table[i];
        if (strcmp(parameter->name, item) != 0 && (parameter->alias == NULL || strcmp(parameter->alias, item) != 0)) {
            continue;
        }
        if (given[i]) {
            return epg_fail(err, EPG_ERR_USAGE, "benchmark %s: %s is given twice", benchmark, parameter->name);
        }
        given[i] = true;
        return read_value(parameter, equals + 1) ? EPG_OK : wrong(benchmark, parameter, equals + 1, err);
    }
    return unknown(benchmark, item, table, count, err);
}

epg_code epg_parameters_parse(const char *benchmark, const char *text, const epg_parameter *table, size_t count,
                              epg_error *err)
{
    if (text == NULL) {
        return EPG_OK;
    }
    bool given[TABLE_MAX] = {false};
    EPG_AUTO_FREE char *copy = epg_strdup(text);
    char *item = copy;
    while (item != NULL) {
        char *next = strchr(item, '&');
        if (next != NULL) {
            *next++ = '\0';
        }
        EPG_TRY(parse_one(benchmark, item, table, count, given, err));
        item = next;
    }
    return EPG_OK;
}

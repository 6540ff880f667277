#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Copies as much as fits; a cut text ends in "...". */
static void set_text(epg_error *err, const char *text)
{
    size_t size = strlen(text);
    if (size < sizeof err->text) {
        memcpy(err->text, text, size + 1);
        return;
    }
    memcpy(err->text, text, sizeof err->text - 4);
    memcpy(err->text + sizeof err->text - 4, "...", 4);
}

__attribute__((format(printf, 2, 0))) static void format_text(epg_error *err, const char *format, va_list arguments)
{
    char text[EPG_ERROR_TEXT + 1];
    (void)vsnprintf(text, sizeof text, format, arguments);
    set_text(err, text);
}

epg_code epg_fail(epg_error *err, epg_code code, const char *format, ...)
{
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        format_text(err, format, arguments);
        va_end(arguments);
        err->code = code;
        err->sys_errno = 0;
    }
    return code;
}

epg_code epg_fail_errno(epg_error *err, int sys_errno, const char *format, ...)
{
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        format_text(err, format, arguments);
        va_end(arguments);
        char reason[128];
        char whole[EPG_ERROR_TEXT + 160];
        (void)snprintf(whole, sizeof whole, "%s: %s", err->text, strerror_r(sys_errno, reason, sizeof reason));
        set_text(err, whole);
        err->code = EPG_ERR_IO;
        err->sys_errno = sys_errno;
    }
    return EPG_ERR_IO;
}

__attribute__((format(printf, 2, 0))) static void put_before(epg_error *err, const char *format, va_list arguments)
{
    char before[EPG_ERROR_TEXT];
    char whole[2 * EPG_ERROR_TEXT + 4];
    (void)vsnprintf(before, sizeof before, format, arguments);
    (void)snprintf(whole, sizeof whole, "%s: %s", before, err->text);
    set_text(err, whole);
}

epg_code epg_fail_within(epg_error *err, const char *format, ...)
{
    if (err == NULL) {
        return EPG_ERR_INTERNAL; /* without an error value the code is lost: callers that wrap must have one */
    }
    va_list arguments;
    va_start(arguments, format);
    put_before(err, format, arguments);
    va_end(arguments);
    return err->code;
}

epg_code epg_fail_as(epg_error *err, epg_code code, const char *format, ...)
{
    if (err != NULL) {
        va_list arguments;
        va_start(arguments, format);
        put_before(err, format, arguments);
        va_end(arguments);
        err->code = code;
    }
    return code;
}

epg_code epg_code_named(const char *name)
{
    for (epg_code code = EPG_OK; name != NULL && code < EPG_ERR_INTERNAL; code++) {
        if (strcmp(name, epg_code_name(code)) == 0) {
            return code;
        }
    }
    return EPG_ERR_INTERNAL;
}

const char *epg_code_name(epg_code code)
{
    switch (code) {
    case EPG_OK:
        return "ok";
    case EPG_ERR_USAGE:
        return "usage";
    case EPG_ERR_INVALID:
        return "invalid";
    case EPG_ERR_LIMIT:
        return "limit";
    case EPG_ERR_CHANGED:
        return "changed";
    case EPG_ERR_NOT_FOUND:
        return "not_found";
    case EPG_ERR_EXISTS:
        return "exists";
    case EPG_ERR_IO:
        return "io";
    case EPG_ERR_TIMEOUT:
        return "timeout";
    case EPG_ERR_CLOSED:
        return "closed";
    case EPG_ERR_PROTOCOL:
        return "protocol";
    case EPG_ERR_INTERRUPTED:
        return "interrupted";
    case EPG_ERR_UNAVAILABLE:
        return "unavailable";
    case EPG_ERR_BENCHMARK:
        return "benchmark";
    case EPG_ERR_EXECUTION:
        return "execution";
    case EPG_ERR_PUBLICATION:
        return "publication";
    case EPG_ERR_INTERNAL:
        return "internal";
    }
    return "unknown";
}

int epg_exit_code(epg_code code)
{
    if (code == EPG_OK) {
        return 0;
    }
    static const struct {
        epg_code code;
        int exit;
    } known[] = {
        {EPG_ERR_USAGE, 2},       {EPG_ERR_INVALID, 2},       {EPG_ERR_LIMIT, 2},     {EPG_ERR_CHANGED, 2},
        {EPG_ERR_NOT_FOUND, 2},   {EPG_ERR_EXISTS, 2},        {EPG_ERR_BENCHMARK, 3}, {EPG_ERR_PUBLICATION, 5},
        {EPG_ERR_UNAVAILABLE, 6}, {EPG_ERR_INTERRUPTED, 130},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code) {
            return known[i].exit;
        }
    }
    return 4; /* EXECUTION, and what the machine refused */
}

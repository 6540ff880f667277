#include "agents/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Texts come from agents and may be made to be slow to match. */
enum { MATCH_LIMIT = 1000000, HEAP_LIMIT_KIB = 16 * 1024 };

struct epg_pattern {
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

epg_code epg_pattern_new(const char *text, bool whole, epg_pattern **out, epg_error *err)
{
    int number = 0;
    PCRE2_SIZE offset = 0;
    uint32_t options = PCRE2_NEVER_BACKSLASH_C | (whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, strlen(text), options, &number, &offset, NULL);
    if (code == NULL) {
        PCRE2_UCHAR message[256];
        (void)pcre2_get_error_message(number, message, sizeof message);
        return epg_fail(err, EPG_ERR_INVALID, "pattern \"%s\": %s at offset %zu", text, (const char *)message, offset);
    }
    epg_pattern *pattern = epg_alloc(sizeof *pattern);
    pattern->code = code;
    pattern->data = pcre2_match_data_create_from_pattern(code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    (void)pcre2_set_match_limit(pattern->context, MATCH_LIMIT);
    (void)pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
    *out = pattern;
    return EPG_OK;
}

void epg_pattern_free(epg_pattern *pattern)
{
    if (pattern == NULL) {
        return;
    }
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->data);
    pcre2_code_free(pattern->code);
    free(pattern);
}

void epg_pattern_cleanup(epg_pattern **pattern)
{
    epg_pattern_free(*pattern);
}

static bool match(const epg_pattern *pattern, epg_span text)
{
    PCRE2_SPTR subject = text.data != NULL ? text.data : (PCRE2_SPTR) "";
    return pcre2_match(pattern->code, subject, text.size, 0, 0, pattern->data, pattern->context) > 0;
}

bool epg_pattern_matches(const epg_pattern *pattern, epg_span text)
{
    return match(pattern, text);
}

bool epg_pattern_capture(const epg_pattern *pattern, epg_span text, const char *name, epg_span *group)
{
    if (!match(pattern, text)) {
        return false;
    }
    int number = name != NULL ? pcre2_substring_number_from_name(pattern->code, (PCRE2_SPTR)name) : 1;
    const PCRE2_SIZE *vector = pcre2_get_ovector_pointer(pattern->data);
    uint32_t count = pcre2_get_ovector_count(pattern->data);
    size_t index = number > 0 && (uint32_t)number < count ? (size_t)number : (count > 1 ? 1 : 0);
    if (vector[2 * index] == PCRE2_UNSET) {
        index = 0;
    }
    *group = epg_span_of(text.data + vector[2 * index], vector[2 * index + 1] - vector[2 * index]);
    return true;
}

bool epg_pattern_once(const char *pattern, bool whole, epg_span text)
{
    EPG_CLEANUP(epg_pattern_cleanup) epg_pattern *compiled = NULL;
    return epg_pattern_new(pattern, whole, &compiled, NULL) == EPG_OK && compiled != NULL && match(compiled, text);
}

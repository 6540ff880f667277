#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/clock.h"

/* Length of the valid UTF-8 sequence that starts `bytes`, 0 when there is none (Unicode's table 3-7). */
static size_t utf8_sequence(const uint8_t *bytes, size_t size)
{
    uint8_t lead = bytes[0];
    if (lead < 0x80) {
        return 1;
    }
    size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                    : lead >= 0xe0 && lead <= 0xef ? 3
                    : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                   : 0;
    if (length == 0 || length > size) {
        return 0;
    }
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (bytes[1] < low || bytes[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

bool epg_utf8_valid(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t at = 0; at < size;) {
        size_t length = utf8_sequence(bytes + at, size - at);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

bool epg_parse_u64(const char *text, size_t size, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (size == 0) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
            return false;
        }
    }
    if (value > max) {
        return false;
    }
    *out = value;
    return true;
}

bool epg_parse_double(const char *text, double *out)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789+-.eE")] != '\0') {
        return false;
    }
    char *end = NULL;
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

size_t epg_double_text(double value, char out[EPG_DOUBLE_TEXT])
{
    int size = 0;
    for (int precision = 15; precision <= 17; precision++) {
        size = snprintf(out, EPG_DOUBLE_TEXT, "%.*g", precision, value);
        if (strtod(out, NULL) == value) {
            break;
        }
    }
    if (out[strcspn(out, ".eEni")] == '\0') {
        memcpy(out + size, ".0", 3);
        size += 2;
    }
    return (size_t)size;
}

void epg_base64_encode(epg_span bytes, epg_buffer *out)
{
    /* In pieces that are a multiple of three, since EVP_EncodeBlock counts in int. */
    const size_t piece = (size_t)3 << 20;
    for (size_t at = 0; at < bytes.size; at += piece) {
        size_t size = bytes.size - at < piece ? bytes.size - at : piece;
        uint8_t *to = epg_buffer_reserve(out, (size + 2) / 3 * 4);
        if (to == NULL) {
            return;
        }
        out->size += (size_t)EVP_EncodeBlock(to, bytes.data + at, (int)size);
    }
}

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool epg_base64_decode(epg_span text, epg_buffer *out)
{
    size_t before = out->size;
    if (text.size % 4 != 0) {
        return false;
    }
    for (size_t at = 0; at < text.size; at += 4) {
        const uint8_t *c = text.data + at;
        bool last = at + 4 == text.size;
        size_t padding = last && c[3] == '=' ? (c[2] == '=' ? 2 : 1) : 0;
        uint32_t bits = 0;
        for (size_t i = 0; i < 4; i++) {
            int digit = i >= 4 - padding ? 0 : base64_digit(c[i]);
            if (digit < 0) {
                goto refuse;
            }
            bits = bits << 6 | (uint32_t)digit;
        }
        if ((padding == 1 && (bits & 0xff) != 0) || (padding == 2 && (bits & 0xffff) != 0)) {
            goto refuse;
        }
        uint8_t bytes[3] = {(uint8_t)(bits >> 16), (uint8_t)(bits >> 8), (uint8_t)bits};
        if (!epg_buffer_append(out, bytes, 3 - padding)) {
            goto refuse;
        }
    }
    return true;
refuse:
    out->size = before;
    return false;
}

bool epg_starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool epg_ends_with(const char *text, const char *suffix)
{
    size_t size = strlen(text);
    size_t tail = strlen(suffix);
    return size >= tail && strcmp(text + size - tail, suffix) == 0;
}

size_t epg_utf8_next(const char *text, size_t size, size_t *columns)
{
    utf8proc_int32_t point = 0;
    utf8proc_ssize_t taken = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &point);
    if (taken <= 0) {
        *columns = 1;
        return 1;
    }
    int width = utf8proc_charwidth(point);
    *columns = width > 0 ? (size_t)width : 0;
    return (size_t)taken;
}

char *epg_printable(const char *text, size_t size)
{
    epg_buffer out = {0};
    const uint8_t *bytes = (const uint8_t *)text;
    for (size_t at = 0; at < size;) {
        size_t length = utf8_sequence(bytes + at, size - at);
        bool control = length == 1 ? bytes[at] < 0x20 || bytes[at] == 0x7f
                                   : length == 2 && bytes[at] == 0xc2 && bytes[at + 1] < 0xa0;
        if (length == 0 || control) {
            (void)epg_buffer_format(&out, "\\x%02x", bytes[at]);
            at++;
        } else {
            (void)epg_buffer_append(&out, bytes + at, length);
            at += length;
        }
    }
    return epg_buffer_take_text(&out);
}

void epg_fill_text(const char *text, size_t column, size_t indent, epg_buffer *out)
{
    enum { WIDTH = 80 };
    bool begun = false; /* a word stands in this line */
    for (text += strspn(text, " \n"); *text != '\0'; text += strspn(text, " \n")) {
        size_t size = strcspn(text, " \n");
        if (begun && column + 1 + size > WIDTH) {
            (void)epg_buffer_format(out, "\n%*s", (int)indent, "");
            column = indent;
            begun = false;
        }
        (void)epg_buffer_format(out, "%s%.*s", begun ? " " : "", (int)size, text);
        column += begun + size;
        begun = true;
        text += size;
    }
    (void)epg_buffer_byte(out, '\n');
}

char *epg_shell_word(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
    if (*text != '\0' && text[strspn(text, plain)] == '\0') {
        return epg_strdup(text);
    }
    EPG_AUTO_BUFFER out = {0};
    (void)epg_buffer_byte(&out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)epg_buffer_text(&out, "'\\''");
        } else {
            (void)epg_buffer_byte(&out, (uint8_t)*text);
        }
    }
    (void)epg_buffer_byte(&out, '\'');
    return epg_buffer_take_text(&out);
}

char *epg_duration_text(int64_t ns)
{
    double seconds = (double)ns / 1e9;
    if (seconds < 1) {
        return epg_format("%.0f ms", seconds * 1e3);
    }
    if (seconds < 60) {
        return epg_format("%.1f s", seconds);
    }
    int64_t whole = ns / EPG_SECOND;
    if (whole < 3600) {
        return epg_format("%" PRId64 " min %" PRId64 " s", whole / 60, whole % 60);
    }
    return epg_format("%" PRId64 " h %" PRId64 " min", whole / 3600, whole / 60 % 60);
}

/* Text: checks and small conversions that more than one room needs. */
#ifndef EPG_BASE_TEXT_H
#define EPG_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

bool epg_utf8_valid(const void *data, size_t size); /* strict: no surrogates, no overlongs; NUL is valid */

/* Decimal digits only, no sign, no space, at least one, value <= max. Leading zeros are accepted. */
bool epg_parse_u64(const char *text, size_t size, uint64_t max, uint64_t *out);
bool epg_parse_double(const char *text, double *out); /* the whole text, finite, no hex, no space */

/* The shortest decimal text that reads back as the same double, always with a '.' or an exponent ("1.0"). */
enum { EPG_DOUBLE_TEXT = 32 };
size_t epg_double_text(double value, char out[EPG_DOUBLE_TEXT]);

void epg_base64_encode(epg_span bytes, epg_buffer *out);
bool epg_base64_decode(epg_span text, epg_buffer *out); /* strict: padding, no space, zero padding bits */

bool epg_starts_with(const char *text, const char *prefix);
bool epg_ends_with(const char *text, const char *suffix);

/* A text made safe to print in one line on a terminal: control bytes and invalid UTF-8 become \xNN. Caller frees. */
char *epg_printable(const char *text, size_t size);

/* Adds `text` word by word, filled into lines of at most 80 columns and ended by a newline: the first goes on at
 * `column`, where the buffer's last line stands, those after it are indented by `indent`. Every run of blanks and
 * newlines in `text` is one space. */
void epg_fill_text(const char *text, size_t column, size_t indent, epg_buffer *out);

/* A word as a POSIX shell reads it back: as it is, or in single quotes. Caller frees. */
char *epg_shell_word(const char *text);

/* The bytes of the next character of UTF-8 text (1 for a byte that begins none) and the columns that a terminal gives
 * it. size > 0. */
size_t epg_utf8_next(const char *text, size_t size, size_t *columns);

/* "1.5 s", "320 ms", "2 min 3 s" for people. Caller frees. */
char *epg_duration_text(int64_t ns);

#endif

/* How it works. Everything to hide becomes an alternative of a PCRE2 expression. PCRE2 bounds the size of one compiled
 * expression, so alternatives are packed into as many expressions as it takes (one, as a rule), and a scan takes the
 * earliest match among them. A stream is scanned with PCRE2's hard partial matching: where the data ends inside what
 * might become a match, the bytes from its beginning on are held back until more data, or the stream's end, decides.
 *
 * An exact value is looked for in pieces of PIECE bytes. Each piece becomes one alternative in which every byte that is
 * not plain may stand as itself, percent-encoded or escaped as in JSON (also JSON within JSON), and further
 * alternatives for base64: the same bytes give three different texts, by where they begin within a group of three, each
 * in two alphabets. Only characters that depend on nothing but the value are compared. */
#include "agents/redaction.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

enum {
    PIECE = 256,
    EXPRESSION_MAX = 16 * 1024, /* text of one expression; a compiled one must stay under 64 Ki units */
    LOOKBEHIND = 16,            /* bytes already let out that a pattern may look back at */
    MATCH_LIMIT = 4000000,
};

/* Keys by their form. Every repeat is bounded, so that no more than EPG_REDACTION_HOLD is ever held back. A key must
 * not be the tail of an ordinary word, but may follow an escaped line end. Each begins with a literal, so that
 * PCRE2 passes quickly over bytes that begin none. */
#define NO_WORD_BEFORE "(?:(?<![A-Za-z0-9])|(?<=\\\\[nrt])|(?<=\\\\u00[0-9A-Fa-f]{2}))"
static const char *const known_keys[] = {
    NO_WORD_BEFORE "(?:sk|rk|pk)[-_](?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{16,256}",
    "(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,255}",
    "github_pat_[A-Za-z0-9_]{22,255}",
    "glpat-[A-Za-z0-9_-]{20,64}",
    "AIza[0-9A-Za-z_-]{35}",
    NO_WORD_BEFORE "(?:AKIA|ASIA)[0-9A-Z]{16}",
    "xox[abeoprs]-[A-Za-z0-9-]{10,250}",
    NO_WORD_BEFORE "hf_[A-Za-z0-9]{30,64}",
    "npm_[A-Za-z0-9]{36}",
    NO_WORD_BEFORE "gsk_[A-Za-z0-9]{40,64}",
    NO_WORD_BEFORE "xai-[A-Za-z0-9]{40,90}",
    "eyJ[A-Za-z0-9_-]{10,512}\\.eyJ[A-Za-z0-9_-]{10,8192}\\.[A-Za-z0-9_-]{10,2048}",
    "(?i:bearer)[ \\t]{1,8}[A-Za-z0-9._~+/-]{20,4096}={0,2}",
    "://\\K[^/\\s:@\"'\\\\]{1,128}:[^/\\s:@\"'\\\\]{3,256}(?=@)",
    "-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{1,16384}-----END [A-Z ]{0,40}PRIVATE KEY-----",
};

typedef struct expression {
    pcre2_code *code;
} expression;

struct epg_redactor {
    epg_buffer *alternatives; /* texts of patterns */
    size_t alternative_count;
    expression *expressions;
    size_t expression_count;
    pcre2_match_data *data;
    pcre2_match_context *context;
};

epg_redactor *epg_redactor_new(void)
{
    return epg_alloc(sizeof(epg_redactor));
}

void epg_redactor_free(epg_redactor *redactor)
{
    if (redactor == NULL) {
        return;
    }
    for (size_t i = 0; i < redactor->alternative_count; i++) {
        epg_buffer_free(&redactor->alternatives[i]);
    }
    free(redactor->alternatives);
    for (size_t i = 0; i < redactor->expression_count; i++) {
        pcre2_code_free(redactor->expressions[i].code);
    }
    free(redactor->expressions);
    pcre2_match_data_free(redactor->data);
    pcre2_match_context_free(redactor->context);
    free(redactor);
}

void epg_redactor_cleanup(epg_redactor **redactor)
{
    epg_redactor_free(*redactor);
}

static epg_buffer *new_alternative(epg_redactor *redactor)
{
    redactor->alternatives =
        epg_grow_array(redactor->alternatives, redactor->alternative_count + 1, sizeof(epg_buffer));
    epg_buffer *added = &redactor->alternatives[redactor->alternative_count++];
    *added = (epg_buffer){0};
    return added;
}

static bool is_plain(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

/* One byte of a value, in every form that it may stand in. */
static void write_byte_pattern(epg_buffer *out, uint8_t byte)
{
    if (is_plain(byte)) {
        epg_buffer_byte(out, byte);
        return;
    }
    epg_buffer_format(out, "(?:\\x%02x|(?i:%%%02x", byte, byte);
    if (byte < 0x80) {
        epg_buffer_format(out, "|\\\\{1,7}u00%02x", byte);
    }
    epg_buffer_byte(out, ')');
    const char *escaped = byte == '\n'   ? "n"
                          : byte == '\t' ? "t"
                          : byte == '\r' ? "r"
                          : byte == '"'  ? "\""
                          : byte == '/'  ? "/"
                          : byte == '\\' ? "\\\\"
                                         : NULL;
    if (escaped != NULL) {
        epg_buffer_format(out, "|\\\\{1,7}%s", escaped);
    }
    epg_buffer_text(out, byte == ' ' ? "|\\+)" : ")");
}

static void add_exact(epg_redactor *redactor, epg_span piece)
{
    epg_buffer *alternative = new_alternative(redactor);
    for (size_t i = 0; i < piece.size; i++) {
        write_byte_pattern(alternative, piece.data[i]);
    }
}

/* The characters of base64 that depend on the piece alone when `before` bytes stand before it in its group of three. */
static void add_base64(epg_redactor *redactor, epg_span piece, size_t before)
{
    EPG_AUTO_BUFFER bytes = {0};
    EPG_AUTO_BUFFER encoded = {0};
    for (size_t i = 0; i < before; i++) {
        epg_buffer_byte(&bytes, 0);
    }
    epg_buffer_append_span(&bytes, piece);
    epg_base64_encode(epg_buffer_span(&bytes), &encoded);
    size_t first = (before * 8 + 5) / 6;
    size_t end = bytes.size * 8 / 6;
    if (end < first + EPG_REDACTION_VALUE_MIN) {
        return;
    }
    epg_buffer *alternative = new_alternative(redactor);
    for (size_t i = first; i < end; i++) {
        uint8_t byte = encoded.data[i];
        if (byte == '+') {
            epg_buffer_text(alternative, "(?:\\+|-|(?i:%2b))");
        } else if (byte == '/') {
            epg_buffer_text(alternative, "(?:\\\\{0,7}/|_|(?i:%2f))");
        } else {
            epg_buffer_byte(alternative, byte);
        }
    }
}

void epg_redactor_add_value(epg_redactor *redactor, const char *value)
{
    size_t size = strlen(value);
    for (size_t at = 0; at < size; at += PIECE) {
        epg_span piece = epg_span_of(value + at, size - at < PIECE ? size - at : PIECE);
        if (piece.size < EPG_REDACTION_VALUE_MIN) {
            continue;
        }
        add_exact(redactor, piece);
        for (size_t before = 0; before < 3; before++) {
            add_base64(redactor, piece, before);
        }
    }
}

static epg_code compile(const char *text, size_t size, pcre2_code **out, epg_error *err)
{
    int number = 0;
    PCRE2_SIZE offset = 0;
    *out = pcre2_compile((PCRE2_SPTR)text, size, PCRE2_NEVER_BACKSLASH_C, &number, &offset, NULL);
    if (*out != NULL) {
        return EPG_OK;
    }
    PCRE2_UCHAR message[256];
    (void)pcre2_get_error_message(number, message, sizeof message);
    return epg_fail(err, EPG_ERR_INVALID, "redaction pattern: %s at offset %zu", (const char *)message, offset);
}

epg_code epg_redactor_add_pattern(epg_redactor *redactor, const char *pattern, epg_error *err)
{
    pcre2_code *code = NULL;
    epg_code result = compile(pattern, strlen(pattern), &code, err);
    pcre2_code_free(code);
    if (result != EPG_OK) {
        return epg_fail_within(err, "\"%s\"", pattern);
    }
    epg_buffer_text(new_alternative(redactor), pattern);
    return EPG_OK;
}

static epg_code add_expression(epg_redactor *redactor, const epg_buffer *text, epg_error *err)
{
    pcre2_code *code = NULL;
    EPG_TRY(compile((const char *)text->data, text->size, &code, err));
    /* Where there is no JIT the interpreter does the same, only slower. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    redactor->expressions = epg_grow_array(redactor->expressions, redactor->expression_count + 1, sizeof(expression));
    redactor->expressions[redactor->expression_count++].code = code;
    return EPG_OK;
}

/* Longer alternatives first: of two values that begin alike the longer is hidden whole. */
static int longer_first(const void *left, const void *right)
{
    const epg_buffer *a = left;
    const epg_buffer *b = right;
    return a->size == b->size ? epg_span_compare(epg_buffer_span(a), epg_buffer_span(b))
                              : (a->size < b->size) - (a->size > b->size);
}

epg_code epg_redactor_ready(epg_redactor *redactor, epg_error *err)
{
    if (redactor->alternative_count > 1) {
        qsort(redactor->alternatives, redactor->alternative_count, sizeof(epg_buffer), longer_first);
    }
    size_t exact_count = redactor->alternative_count;
    for (size_t i = 0; i < EPG_COUNT(known_keys); i++) {
        epg_buffer_text(new_alternative(redactor), known_keys[i]);
    }
    EPG_AUTO_BUFFER text = {0};
    for (size_t i = 0; i < redactor->alternative_count; i++) {
        const epg_buffer *next = &redactor->alternatives[i];
        if (i > 0 && i < exact_count && epg_span_equal(epg_buffer_span(next), epg_buffer_span(next - 1))) {
            continue;
        }
        if (text.size > 0 && text.size + next->size > EXPRESSION_MAX) {
            EPG_TRY(add_expression(redactor, &text, err));
            epg_buffer_clear(&text);
        }
        if (text.size > 0) {
            epg_buffer_byte(&text, '|');
        }
        epg_buffer_text(&text, "(?:");
        epg_buffer_append_span(&text, epg_buffer_span(next));
        epg_buffer_byte(&text, ')');
    }
    EPG_TRY(add_expression(redactor, &text, err));
    redactor->data = pcre2_match_data_create(1, NULL);
    redactor->context = pcre2_match_context_create(NULL);
    (void)pcre2_set_match_limit(redactor->context, MATCH_LIMIT);
    return EPG_OK;
}

typedef enum hit { HIT_NONE, HIT_WHOLE, HIT_PARTIAL, HIT_FAULT } hit;

/* The earliest hit at or after `from`. Of two at one place the whole one counts. */
static hit next_hit(const epg_redactor *redactor, epg_span text, size_t from, bool last, size_t *start, size_t *end)
{
    hit best = HIT_NONE;
    for (size_t i = 0; i < redactor->expression_count; i++) {
        uint32_t options = PCRE2_NOTEMPTY | (last ? 0 : PCRE2_PARTIAL_HARD);
        int rc = pcre2_match(redactor->expressions[i].code, text.data, text.size, from, options, redactor->data,
                             redactor->context);
        if (rc == PCRE2_ERROR_NOMATCH) {
            continue;
        }
        if (rc < 0 && rc != PCRE2_ERROR_PARTIAL) {
            return HIT_FAULT;
        }
        const PCRE2_SIZE *vector = pcre2_get_ovector_pointer(redactor->data);
        hit kind = rc == PCRE2_ERROR_PARTIAL ? HIT_PARTIAL : HIT_WHOLE;
        if (best == HIT_NONE || vector[0] < *start ||
            (vector[0] == *start && kind == HIT_WHOLE && best == HIT_PARTIAL)) {
            best = kind;
            *start = vector[0];
            *end = vector[1];
        }
    }
    return best;
}

/* Lets out what of `text` from `from` on is decided, and returns where the undecided rest begins. */
static size_t scan(const epg_redactor *redactor, epg_span text, size_t from, bool last, epg_buffer *out,
                   uint64_t *found)
{
    while (from < text.size) {
        size_t start = text.size;
        size_t end = text.size;
        hit kind = next_hit(redactor, text, from, last, &start, &end);
        if (kind == HIT_FAULT) {
            /* Too much work to tell: nothing of it is let out. */
            epg_buffer_text(out, EPG_REDACTED);
            (*found)++;
            return text.size;
        }
        epg_buffer_append(out, text.data + from, start - from);
        from = start;
        if (kind == HIT_WHOLE) {
            epg_buffer_text(out, EPG_REDACTED);
            (*found)++;
            from = end;
        } else if (kind == HIT_PARTIAL) {
            if (text.size - start <= EPG_REDACTION_HOLD) {
                return start;
            }
            /* Longer than any secret that is looked for: it is none. */
            epg_buffer_append(out, text.data + start, EPG_REDACTION_HOLD / 2);
            from = start + EPG_REDACTION_HOLD / 2;
        }
    }
    return text.size;
}

uint64_t epg_redact(const epg_redactor *redactor, epg_span text, epg_buffer *out)
{
    uint64_t found = 0;
    (void)scan(redactor, text, 0, true, out, &found);
    return found;
}

void epg_redaction_begin(epg_redaction *stream, const epg_redactor *redactor)
{
    *stream = (epg_redaction){.redactor = redactor};
}

void epg_redaction_feed(epg_redaction *stream, epg_span chunk, epg_buffer *out)
{
    epg_buffer_append_span(&stream->pending, chunk);
    size_t rest =
        scan(stream->redactor, epg_buffer_span(&stream->pending), stream->context, false, out, &stream->found);
    size_t drop = rest > LOOKBEHIND ? rest - LOOKBEHIND : 0;
    epg_buffer_drop_front(&stream->pending, drop);
    stream->context = rest - drop;
}

void epg_redaction_end(epg_redaction *stream, epg_buffer *out)
{
    (void)scan(stream->redactor, epg_buffer_span(&stream->pending), stream->context, true, out, &stream->found);
    epg_buffer_free(&stream->pending);
    stream->context = 0;
}

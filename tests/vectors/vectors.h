/* epg-vectors: runs the contract's computed examples (tests/vectors/data, or any directory of that form) against us.
 *
 * One family is one file of a vector directory, NAME.json, and one function here, epg_vectors_NAME, in one file of its
 * own, tests/vectors/NAME.c (small families that belong together may share a file).
 *
 * To add a family: write `void epg_vectors_NAME(const json_t *document, epg_vector_report *report)`, which gives a
 * verdict on each vector through the functions below; if NAME stands in EPG_VECTOR_FAMILIES already, that is all, else
 * add it there. Use the keys that you need and ignore the others. Right values come from the document, never from
 * ourselves. A member that should be there and isn't is a failure: say so with epg_vector_fail. */
#ifndef EPG_TESTS_VECTORS_H
#define EPG_TESTS_VECTORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* In the order in which they run: what others stand on comes first. A family without a function yet is skipped. */
#define EPG_VECTOR_FAMILIES(X)                                                                                         \
    X(constants)                                                                                                       \
    X(wire_values)                                                                                                     \
    X(wire_invalid)                                                                                                    \
    X(wire_lenient)                                                                                                    \
    X(environment_digests)                                                                                             \
    X(seeds)                                                                                                           \
    X(frame_decoding)                                                                                                  \
    X(programs)                                                                                                        \
    X(skills)                                                                                                          \
    X(selectors)                                                                                                       \
    X(cli)                                                                                                             \
    X(sessions)                                                                                                        \
    X(cartpole)                                                                                                        \
    X(builtin_benchmarks)                                                                                              \
    X(worlds)

typedef struct epg_vector_report {
    const char *directory; /* of the file, for families that need what lies beside it */
    const char *file;      /* "seeds.json" */
    size_t passed;
    size_t failed;
} epg_vector_report;

/* Counts one vector as passed. */
void epg_vector_pass(epg_vector_report *report);

/* Counts one vector as failed and prints which and why: one line. */
void epg_vector_fail(epg_vector_report *report, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts one vector as passed or failed; the text, printed only on failure, says what was wrong. Returns `ok`. */
bool epg_vector_verdict(epg_vector_report *report, const char *name, bool ok, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The vector's "name", or "(unnamed)". */
const char *epg_vector_name(const json_t *vector);

#define EPG_VECTOR_DECLARE(name)                                                                                       \
    void epg_vectors_##name(const json_t *document, epg_vector_report *report) __attribute__((weak));
EPG_VECTOR_FAMILIES(EPG_VECTOR_DECLARE)
#undef EPG_VECTOR_DECLARE

#endif

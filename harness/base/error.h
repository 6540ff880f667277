/* Errors: how every function of the project tells that it failed.
 *
 * A function that can fail returns an epg_code and takes an `epg_error *` as its last argument. On EPG_OK the
 * error is untouched; on anything else the error holds the code, an errno where a system call failed, and one
 * line of text for a person. Outputs are untouched on failure. The error argument may be NULL.
 *
 * Three kinds are never mixed: a Policy's failure is data (evaluation/outcome.h) and never an epg_error; a
 * trusted fault says whose it is (BENCHMARK, EXECUTION, PUBLICATION); a user's mistake is USAGE and is told
 * before anything is created. */
#ifndef EPG_BASE_ERROR_H
#define EPG_BASE_ERROR_H

#include <stdarg.h>

typedef enum epg_code {
    EPG_OK = 0,
    EPG_ERR_USAGE,   /* the user's mistake: an option, a path, a name */
    EPG_ERR_INVALID, /* content breaks a format or a contract */
    EPG_ERR_LIMIT,   /* content is over a stated bound */
    EPG_ERR_CHANGED, /* a source changed while it was read */
    EPG_ERR_NOT_FOUND,
    EPG_ERR_EXISTS,
    EPG_ERR_IO,          /* a system call failed; sys_errno tells which way */
    EPG_ERR_TIMEOUT,     /* a deadline passed */
    EPG_ERR_CLOSED,      /* the peer ended */
    EPG_ERR_PROTOCOL,    /* the peer broke the protocol */
    EPG_ERR_INTERRUPTED, /* a signal asked us to stop */
    EPG_ERR_UNAVAILABLE, /* what was asked for can't be had on this machine */
    EPG_ERR_BENCHMARK,   /* trusted fault: the Benchmark's */
    EPG_ERR_EXECUTION,   /* trusted fault: preparing, controlling or reaping processes */
    EPG_ERR_PUBLICATION, /* trusted fault: writing the record */
    EPG_ERR_INTERNAL     /* a fault of this project */
} epg_code;

enum { EPG_ERROR_TEXT = 1024 };

typedef struct epg_error {
    epg_code code;
    int sys_errno; /* 0 where no system call failed */
    char text[EPG_ERROR_TEXT];
} epg_error;

/* Fills `err` (may be NULL) and returns `code`, so that a caller writes `return epg_fail(err, ...)`. */
epg_code epg_fail(epg_error *err, epg_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As epg_fail with EPG_ERR_IO and `sys_errno`; ": <strerror>" is appended to the text. */
epg_code epg_fail_errno(epg_error *err, int sys_errno, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "text: " before what `err` says and returns its code: the way a caller adds what it was doing. */
epg_code epg_fail_within(epg_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As epg_fail_within, and makes the code `code`: the way a fault is given to its owner. */
epg_code epg_fail_as(epg_error *err, epg_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A code's stable lower-case name, for records and --json ("usage", "benchmark", ...). */
const char *epg_code_name(epg_code code);
epg_code epg_code_named(const char *name); /* INTERNAL for none of these, and for NULL */

/* The exit code a command ends with for `code`: see docs/exit-codes.md. */
int epg_exit_code(epg_code code);

/* Runs an expression that returns an epg_code and returns it from the calling function unless it is EPG_OK. */
#define EPG_TRY(expression)                                                                                            \
    do {                                                                                                               \
        epg_code epg_try_code_ = (expression);                                                                         \
        if (epg_try_code_ != EPG_OK) {                                                                                 \
            return epg_try_code_;                                                                                      \
        }                                                                                                              \
    } while (0)

#endif

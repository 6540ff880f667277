/* Verification of a Run's record: every digest, schema, count, sum, git object and cross reference that the record
 * holds is computed again and compared. What was changed after the fact shows: a Program that was edited, a score that
 * was altered, an event that was removed. Reads only; needs neither the Benchmark nor an interpreter. */
#ifndef EPG_RUNS_VERIFY_H
#define EPG_RUNS_VERIFY_H

#include "runs/history.h"
#include "runs/publication.h"

typedef struct epg_verification {
    epg_evidence_list findings;
    uint64_t checks; /* comparisons made */
    bool sealed;     /* the events seal the Run's documents; false: a Host that did not know of it wrote them */
    char *state;     /* of the Run: "finished", "killed", ...; owned */
} epg_verification;
void epg_verification_free(epg_verification *verification);

/* INVALID when the directory holds no Run that can be read at all; otherwise what is wrong stands in `findings`. */
epg_code epg_verify(const char *directory, epg_verification *out, epg_error *err);

#endif

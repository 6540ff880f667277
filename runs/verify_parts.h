/* What the files that verify a Run share. Private to runs/. */
#ifndef EPG_RUNS_VERIFY_PARTS_H
#define EPG_RUNS_VERIFY_PARTS_H

#include "runs/verify.h"

typedef struct epg_verifier {
    int run;
    const char *directory;
    epg_verification *out;
    epg_history history;
    bool ours;                       /* the events are chained: no foreign Host wrote this Run */
    bool settled;                    /* run.json was the last that was written: nothing was cut off */
    uint64_t sealed;                 /* events when run.json was written; 0: it does not tell */
    char after_seal[EPG_SHA256_HEX]; /* "previous" of the event after those: of a Run that went on */
} epg_verifier;

/* One comparison; what does not hold becomes a finding. Returns `holds`. */
bool epg_verify_expect(epg_verifier *self, bool holds, const char *where, const char *what);

/* verify_copies.c: Programs and publications, in the git history and in both copies. */
epg_code epg_verify_copies(epg_verifier *self, epg_error *err);
/* verify_seals.c: documents that the events seal, and files that nobody should have put there. */
epg_code epg_verify_seals(epg_verifier *self, epg_error *err);

#endif

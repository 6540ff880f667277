/* Secrets in what a Run was asked to do: config.json is kept and shown, so no secret may stand in it.
 *
 * A secret is a value of an option that its adapter calls secret, of a secret variable, or one that looks like a key
 * (agents/redaction.h). Where the Host has a variable that holds it, its place is taken by "[secret:NAME]" and the
 * value comes from that variable again when the Run goes on; otherwise by "[redacted]", and it is lost. */
#ifndef EPG_RUNS_WITHHELD_H
#define EPG_RUNS_WITHHELD_H

#include "agents/redaction.h"
#include "base/json.h"

typedef struct epg_withholding {
    const epg_redactor *redactor;
    char *const *environment; /* NAME=value, NULL-terminated */
    const char **variables;   /* "NAME=value" of those that are needed again; free with epg_withholding_free */
    size_t count;
    bool lost; /* something was not in any variable */
} epg_withholding;
void epg_withholding_free(epg_withholding *self);

/* `word` as it may be kept; caller frees. `secret`: all of it is. */
char *epg_withhold(epg_withholding *self, const char *word, bool secret);
/* {"lost":false,"variables":["NAME"]} */
void epg_withholding_write(const epg_withholding *self, epg_json_writer *writer, const char *key);

/* A kept word with its secrets again, out of this process's environment; caller frees. `withheld` is the document of
 * epg_withholding_write (NULL: nothing was withheld). A variable that is not set leaves its place as it is. */
char *epg_withheld_restore(const char *word, const json_t *withheld);
/* Why the Agent can't be started again: what was lost, or the variable that is not set. NULL: it can. Caller frees. */
char *epg_withheld_missing(const json_t *withheld);

#endif

/* Bulk retention: how much of the bulk artifacts a Run keeps (CONTRACTS section 9).
 *
 * After each publication, while the bulk bytes of both copies exceed the limit, the bulk files of the oldest submission
 * that still has some go, in both copies, and its availability.json says so; the newest is never touched.
 * retention.json in workspace/feedback tells the state. availability.json changes before its files go: it never claims
 * what is gone. */
#ifndef EPG_RUNS_RETENTION_H
#define EPG_RUNS_RETENTION_H

#include "runs/publication.h"

typedef struct epg_retention epg_retention;

epg_retention *epg_retention_new(uint64_t limit_bytes);
void epg_retention_free(epg_retention *retention);

/* Learns of a submission whose publication exists: for resume, oldest first. Reads its Host copy's availability.json;
 * an eviction in whose middle a Host died is completed. */
epg_code epg_retention_restore(epg_retention *retention, epg_publisher *publisher, uint64_t number, epg_error *err);

/* Takes up the newest submission, which was just published or restored, evicts, and writes retention.json. */
epg_code epg_retention_apply(epg_retention *retention, epg_publisher *publisher, uint64_t number,
                             epg_evidence_list *evidence, epg_error *err);

/* For checking: takes up what the Host's copy of a submission tells, and changes nothing; what retention.json then
 * says.
 */
epg_code epg_retention_learn(epg_retention *retention, epg_publisher *publisher, uint64_t number, epg_error *err);
void epg_retention_to_json(const epg_retention *retention, epg_buffer *out);

uint64_t epg_retention_bytes(const epg_retention *retention); /* kept now, in both copies */

#endif

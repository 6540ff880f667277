/* The records of one evaluation that a pool has kept in a directory, read forward: what step digests and whole traces
 * are made of. */
#ifndef EPG_RUNS_KEPT_RECORDS_H
#define EPG_RUNS_KEPT_RECORDS_H

#include "evaluation/evaluation.h"
#include "evaluation/record.h"
#include "evaluation/spool.h"

typedef struct epg_kept_records {
    epg_spools spools;
    const epg_episode_result *items; /* borrowed, as everything here */
    epg_record_reader *reader;
    epg_records records; /* walk these */
} epg_kept_records;

/* `items`: Episodes of the evaluation `name`, in the order in which they are to be read. Reading one fails with
 * NOT_FOUND when its record is not there any more. */
void epg_kept_records_open(epg_kept_records *kept, int directory, const char *name, const epg_episode_result *items,
                           size_t count);
void epg_kept_records_close(epg_kept_records *kept);

#endif

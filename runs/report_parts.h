/* The parts of a report's document. Private to report*.c. */
#ifndef EPG_RUNS_REPORT_PARTS_H
#define EPG_RUNS_REPORT_PARTS_H

#include "runs/reading.h"
#include "runs/summary.h"

/* What one Run may take of the page, in bytes, and what did not fit. */
typedef struct epg_report_room {
    size_t submissions; /* how many are told */
    size_t diffs, feedback, episodes, replays, timeline;
    uint64_t submissions_left, diffs_cut, feedback_cut, episodes_left, replays_left, events_left;
} epg_report_room;

/* What a text takes once it stands in the page. */
size_t epg_report_cost(epg_span text);
/* The text as valid UTF-8 (other bytes as \xNN), as much of it as costs `room` at most; how many bytes were left. */
size_t epg_report_text(epg_span text, size_t room, epg_buffer *out);
/* {"left":N,"text":"..."} */
size_t epg_report_put_text(epg_json_writer *writer, const char *key, epg_span text, size_t room);
/* The same number in five significant digits: enough for a picture. */
double epg_report_round(double value);

void epg_report_put_submissions(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer);
/* The Episodes of Validation and Assessment. */
void epg_report_put_held_out(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer);
/* Agent's own timeline. */
void epg_report_put_timeline(const epg_reading *reading, epg_report_room *room, epg_json_writer *writer);
/* Episodes of a submission from its trace, to be drawn; NULL: there is no trace. */
json_t *epg_report_replay(const epg_reading *reading, uint64_t number, const json_t *feedback, size_t room);

#endif

/* A page that shows Runs to people: one HTML file that needs nothing else, not even a network.
 *
 * How it works: what is shown is written as one JSON document into the page; the page's own script (runs/page/,
 * compiled in) builds all that is seen from it as text nodes, never as markup. `<` is escaped everywhere in the
 * document, and the page's policy lets no script run but the one whose hash it names: so whatever a Program, a Feedback
 * or an agent wrote stays text. The page holds no clock: the same Runs give the same bytes.
 *
 * Every part has a share of EPG_REPORT_BYTES; what did not fit is counted, and the page says so. */
#ifndef EPG_RUNS_REPORT_H
#define EPG_RUNS_REPORT_H

#include "runs/reading.h"
#include "runs/verify.h"

enum { EPG_REPORT_BYTES = 5 * 1000 * 1000, EPG_REPORT_RUNS = 20 };

typedef struct epg_report_run {
    const epg_reading *reading;           /* with its Episodes (EPG_READ_EPISODES) */
    const epg_verification *verification; /* what does not hold stands on top of the page; NULL: not verified */
} epg_report_run;

/* `runs`: 1 to EPG_REPORT_RUNS. Appends the page. */
epg_code epg_report_page(const epg_report_run *runs, size_t count, epg_buffer *out, epg_error *err);

/* True when the text begins as a page of ours does. */
bool epg_report_is_page(epg_span text);

#endif

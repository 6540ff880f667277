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

enum { EPG_REPORT_BYTES = 5 * 1000 * 1000, EPG_REPORT_RUNS = 20 };

/* `readings`: 1 to EPG_REPORT_RUNS, read with their Episodes (EPG_READ_EPISODES). Appends the page. */
epg_code epg_report_page(const epg_reading *readings, size_t count, epg_buffer *out, epg_error *err);

#endif

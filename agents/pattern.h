/* Patterns: PCRE2 over bytes, bounded in the work that one match may do. */
#ifndef EPG_AGENTS_PATTERN_H
#define EPG_AGENTS_PATTERN_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

typedef struct epg_pattern epg_pattern;

/* `whole`: the pattern must match the whole text. INVALID tells what is wrong and where. Free with epg_pattern_free. */
epg_code epg_pattern_new(const char *text, bool whole, epg_pattern **out, epg_error *err);
void epg_pattern_free(epg_pattern *pattern);
void epg_pattern_cleanup(epg_pattern **pattern);
#define EPG_AUTO_PATTERN EPG_CLEANUP(epg_pattern_cleanup) epg_pattern

/* False also where matching would take too much work. */
bool epg_pattern_matches(const epg_pattern *pattern, epg_span text);
/* As above; *group becomes the group called `name`, else the first group, else the whole match. Borrows from `text`. */
bool epg_pattern_capture(const epg_pattern *pattern, epg_span text, const char *name, epg_span *group);

/* Does `pattern`, which is known to compile, match in `text`? For patterns that are used once. */
bool epg_pattern_once(const char *pattern, bool whole, epg_span text);

#endif

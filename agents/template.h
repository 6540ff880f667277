/* The two small languages of adapters: placeholders in texts, and conditions. Both ask a lookup for what names stand
 * for.
 *
 * Placeholders: `{name}` becomes what `name` stands for, `{name:json}` the same as a JSON string (a list of names, for
 * `keep_from_tools`, is JSON already and is put as it is), `{{` a plain `{`. Names are `[a-z][a-z0-9_-]*`; braces
 * around anything else are plain text.
 *
 * Conditions (`"when"`): one text or a list of texts that must all hold. A text is one or more terms parted by `|`, of
 * which one must hold; `!` before a term turns it round. Terms: `name` (stands for something), `name=value`,
 * `version<X`, `version>=X` (dotted numbers), `env:NAME` (the variable reaches the agent). */
#ifndef EPG_AGENTS_TEMPLATE_H
#define EPG_AGENTS_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* What `name` stands for; NULL: nothing. The text is valid until the next call. */
typedef const char *epg_lookup(void *context, const char *name);

/* Appends the expanded text. USAGE names a placeholder that stands for nothing; `out` then holds a part. */
epg_code epg_template_expand(const char *text, epg_lookup *lookup, void *context, epg_buffer *out, epg_error *err);

/* As above for every text of a JSON value, keys too. The caller owns the result. */
epg_code epg_template_expand_json(const json_t *value, epg_lookup *lookup, void *context, json_t **out, epg_error *err);

/* Is `when` (NULL: always) well-formed, with names for which `known` gives something? INVALID. */
epg_code epg_condition_check(const json_t *when, epg_lookup *known, void *context, epg_error *err);
bool epg_condition_holds(const json_t *when, epg_lookup *lookup, void *context);

/* Dotted numbers, missing parts are 0; what follows the numbers is ignored. < 0, 0, > 0. */
int epg_version_compare(const char *a, const char *b);

#endif

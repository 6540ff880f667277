/* Which directories must be shown so that a program outside the system's own directories can run. Private to this
 * room. */
#ifndef EPG_EXECUTION_PATHS_H
#define EPG_EXECUTION_PATHS_H

#include <stdbool.h>

#include "execution/box.h"

/* In /usr and the like, which every sandbox shows. */
bool epg_path_is_system(const char *path);
/* Adds `path` unless it is a system's or lies in one that is there already. */
void epg_paths_add(epg_words *paths, const char *path);
/* Adds what the interpreter `python` (absolute; in a venv or not) needs: its prefixes. *run: the path to run it by, for
 * the caller to free. USAGE: it could be shown only together with a whole home or another directory of many uses. */
epg_code epg_interpreter_paths(const char *python, epg_words *paths, char **run, epg_error *err);
/* Adds every link that is followed on the way along `path` (to be shown as links, epg_box_link). *real: where it ends;
 * caller frees. NOT_FOUND. */
epg_code epg_paths_follow(const char *path, epg_words *paths, char **real, epg_error *err);
/* Fails with USAGE when showing `directory` whole would show more than one program's own files. */
epg_code epg_path_may_show(const char *directory, const char *what, epg_error *err);

#endif

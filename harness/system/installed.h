/* Where the files lie that are installed with this program. */
#ifndef EPG_SYSTEM_INSTALLED_H
#define EPG_SYSTEM_INSTALLED_H

/* The real path of `name` below the data directory: beside the binary (PREFIX/bin, PREFIX/share/evopolicygym), or
 * `in_source` in the source tree that it was built from, or where it was to be installed. NULL: nowhere. Caller frees.
 */
char *epg_installed_find(const char *name, const char *in_source);

#endif

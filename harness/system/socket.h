/* Unix stream sockets at short absolute paths (sun_path ends at 107 bytes). */
#ifndef EPG_SYSTEM_SOCKET_H
#define EPG_SYSTEM_SOCKET_H

#include <stdint.h>

#include "base/error.h"

/* Makes a private directory (0700) with a short absolute path below $XDG_RUNTIME_DIR or /tmp and listens at
 * "<dir>/session.sock" (0600). The caller removes both with epg_socket_remove; those of Hosts that were killed are
 * removed here by the next one. */
epg_code epg_socket_listen(int *fd, char **directory, char **path, epg_error *err);
void epg_socket_remove(char *directory, char *path); /* unlinks, frees both; NULL is fine */
epg_code epg_socket_connect(const char *path, int64_t deadline, int *fd, epg_error *err);

#endif

/* Unix sockets: streams at short absolute paths (sun_path ends at 107 bytes), and packets whose sender is told. */
#ifndef EPG_SYSTEM_SOCKET_H
#define EPG_SYSTEM_SOCKET_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Makes a private directory (0700) with a short absolute path below $XDG_RUNTIME_DIR or /tmp and listens at
 * "<dir>/session.sock" (0600). The caller removes both with epg_socket_remove; those of Hosts that were killed are
 * removed here by the next one. */
epg_code epg_socket_listen(int *fd, char **directory, char **path, epg_error *err);
void epg_socket_remove(char *directory, char *path); /* unlinks, frees both; NULL is fine */
epg_code epg_socket_connect(const char *path, int64_t deadline, int *fd, epg_error *err);

/* A pair of packet sockets, close-on-exec; what comes to *ours tells its sender. 0, or -1 with errno. */
int epg_socket_pair(int *ours, int *theirs);
/* A packet that is there, without waiting: its size, 0 when nobody can send any more, -1 with errno. *sender: the
 * process that sent it, by our own count; untouched when nothing came. */
ssize_t epg_socket_receive(int ours, void *packet, size_t size, pid_t *sender);

#endif

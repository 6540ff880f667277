/* The session client's work, apart from its process: `evopolicygym-session` (CONTRACTS section 8).
 *
 * Speaks with the Host over the socket named by EVOPOLICYGYM_SESSION_SOCKET. Success: the response's JSON on stdout,
 * exit 0. Refused by the Host: the JSON on stderr, exit 1. The client's own errors (arguments, no session, a reply that
 * is cut off or is none): {"ok":false,"error":{"code":"client_error",...}} on stderr, exit 2. */
#ifndef EPG_RUNS_CLIENT_H
#define EPG_RUNS_CLIENT_H

#include <stdio.h>

int epg_client_main(int argc, char *const argv[], FILE *out, FILE *diagnostics);

#endif

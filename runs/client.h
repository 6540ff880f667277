/* The session client's work, apart from its process: `evopolicygym-session` (CONTRACTS section 8).
 *
 *   evopolicygym-session submit program --episodes SELECTOR
 *   evopolicygym-session finish ID [ID...]
 *   evopolicygym-session status
 *   evopolicygym-session wait [ID]
 *
 * Speaks with the Host over the socket named by EVOPOLICYGYM_SESSION_SOCKET. Success: the response's JSON on `out`,
 * exit 0. Refused by the Host: the JSON on `diagnostics`, exit 1. The client's own errors (no session, not the
 * workspace's Program, a reply that is cut off or is none): {"ok":false,"error":{"code":"client_error",...}} on
 * `diagnostics`, exit 2; wrong arguments: a line that says what to do there, exit 2. */
#ifndef EPG_RUNS_CLIENT_H
#define EPG_RUNS_CLIENT_H

#include <stdio.h>

int epg_client_main(int argc, char *const argv[], FILE *out, FILE *diagnostics);

#endif

/* The one address that an Agent with `proxy=` reaches: a process on the Host that takes the listening socket out of
 * the sandbox's network and connects each of its connections to that address. Part of evopolicygym-contain. */
#ifndef EPG_EXECUTION_RELAY_H
#define EPG_EXECUTION_RELAY_H

/* Outside: starts the relay as a child of this process; it waits at EPG_FD_PROXY_OUT for the listening socket and ends
 * with the sandbox. 0, or an exit code with the reason on stderr. */
int epg_relay_start(const char *host, const char *port);
/* Inside: listens at 127.0.0.1:port and hands the socket over EPG_FD_PROXY. */
int epg_relay_listen(const char *port);

#endif

/* Process 1 of the Agent's sandbox: it waits for the Agent, counts what that left behind, and ends with its exit code
 * (128 and the signal, when one ended it), which ends all the rest.
 *
 * Counted here, for nobody outside can: bwrap and its own process 1 end on their own time after the Agent, and what
 * lives in the namespace goes with them. No signal from inside reaches process 1, nor can its descriptors be reached.
 */
#ifndef EPG_EXECUTION_FIRST_H
#define EPG_EXECUTION_FIRST_H

/* Comes back in a child, the leader of a session, that is to become the Agent; process 1 itself stays within. -1:
 * errno. */
int epg_become_first(void);

#endif

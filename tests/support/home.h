/* A checked fixture: a private directory of each test's own, with a descriptor of it. */
#ifndef EPG_TESTS_HOME_H
#define EPG_TESTS_HOME_H

extern char *home_path;
extern int home;

void home_set_up(void);
void home_tear_down(void);

#endif

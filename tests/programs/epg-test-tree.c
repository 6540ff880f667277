/* Trees of processes that do not want to end. Each writes one line to stdout when it is all there; every process of the
 * tree holds stdout open, so that the reader's end of file proves that none is left.
 *
 *   sleep            one process
 *   exit CODE        one line, then the end with CODE
 *   descriptors      prints the numbers of its open descriptors
 *   session          prints "session" when it leads one
 *   obedient         ends with 7 on SIGTERM
 *   deaf             ignores SIGTERM and more
 *   daemon           a double-forked child in its own session, deaf; the first process stays
 *   leave            as daemon; the first process ends
 *   stopped          a child that has stopped itself
 *   chain N          each process has one child, N deep
 *   bomb N           all fork as fast as they can until N were made, then stay
 *   storm N          all fork again and again, into sessions of their own, until N were made
 *   zip N            N processes that fork and exit, for ever: each lives only a moment
 *   supervisor N     keeps N children alive, making new ones as they die
 * No process of a tree lives longer than LIFETIME seconds after the first one began: longer than any test waits, so
 * that a test can't take this for its own success, and short enough to clear up after one that failed. */
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIFETIME = 60 };

static time_t now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static time_t end_of_life;

static void bound_life(void)
{
    time_t left = end_of_life - now();
    if (left <= 0) {
        _exit(0);
    }
    (void)alarm((unsigned)left); /* a fork clears it */
}

static pid_t split(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        bound_life();
    }
    return pid;
}

static void say(const char *text)
{
    (void)!write(1, text, strlen(text));
}

static _Noreturn void stay(void)
{
    for (;;) {
        (void)pause();
    }
}

static void go_deaf(void)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
}

static void on_term(int number)
{
    (void)number;
    _exit(7);
}

static void descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry = NULL;
    while ((entry = readdir(directory)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && fd != dirfd(directory)) {
            (void)printf("%d ", fd);
        }
    }
    (void)closedir(directory);
    (void)printf("\n");
}

/* Returns in the first process, once the daemon is there. */
static void daemonize(void)
{
    int ready[2];
    char mark = 0;
    if (pipe(ready) < 0) {
        return;
    }
    if (split() != 0) {
        (void)close(ready[1]);
        (void)!read(ready[0], &mark, 1);
        return;
    }
    (void)setsid();
    if (split() != 0) {
        _exit(0);
    }
    (void)setsid();
    go_deaf();
    say("ready\n");
    (void)close(ready[0]);
    (void)close(ready[1]);
    stay();
}

static void chain(int depth)
{
    while (depth-- > 0) {
        if (split() != 0) {
            stay();
        }
    }
    say("ready\n");
    stay();
}

static atomic_int *shared_counter(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

static _Noreturn void bomb(int most)
{
    atomic_int *made = shared_counter();
    go_deaf();
    int mine = 0;
    while ((mine = atomic_fetch_add(made, 1)) < most && split() >= 0) {
        if (mine == most - 1) {
            say("ready\n");
        }
    }
    stay();
}

static _Noreturn void storm(int most)
{
    static const struct timespec little = {.tv_nsec = 5000000};
    atomic_int *made = shared_counter();
    go_deaf();
    for (;;) {
        int mine = atomic_fetch_add(made, 1);
        if (mine < most && split() == 0) {
            (void)setsid();
        }
        if (mine == most / 5) {
            say("ready\n");
        }
        if (mine >= most) {
            stay();
        }
        (void)nanosleep(&little, NULL);
    }
}

static _Noreturn void zip(int count)
{
    go_deaf();
    (void)signal(SIGCHLD, SIG_DFL);
    for (int i = 1; i < count; i++) {
        if (split() == 0) {
            break;
        }
    }
    say("ready\n");
    for (;;) {
        if (split() > 0) {
            _exit(0);
        }
    }
}

static _Noreturn void supervisor(int count)
{
    go_deaf();
    for (int living = 0;;) {
        for (; living < count; living++) {
            if (split() == 0) {
                (void)setsid();
                stay();
            }
        }
        say("ready\n");
        if (wait(NULL) > 0) {
            living--;
        }
    }
}

static void stopped(void)
{
    pid_t child = split();
    if (child == 0) {
        (void)raise(SIGSTOP);
        stay();
    }
    int status = 0;
    (void)waitpid(child, &status, WUNTRACED);
    say("ready\n");
    stay();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int number = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
    end_of_life = now() + LIFETIME;
    bound_life();
    if (strcmp(what, "exit") == 0) {
        say("ready\n");
        return number;
    } else if (strcmp(what, "descriptors") == 0) {
        descriptors();
        return 0;
    } else if (strcmp(what, "session") == 0) {
        say(getsid(0) == getpid() ? "session\n" : "none\n");
        return 0;
    } else if (strcmp(what, "daemon") == 0) {
        daemonize();
    } else if (strcmp(what, "leave") == 0) {
        daemonize();
        return 0;
    } else if (strcmp(what, "stopped") == 0) {
        stopped();
    } else if (strcmp(what, "chain") == 0) {
        chain(number);
    } else if (strcmp(what, "bomb") == 0) {
        bomb(number);
    } else if (strcmp(what, "storm") == 0) {
        storm(number);
    } else if (strcmp(what, "zip") == 0) {
        zip(number);
    } else if (strcmp(what, "supervisor") == 0) {
        supervisor(number);
    } else if (strcmp(what, "obedient") == 0) {
        (void)signal(SIGTERM, on_term);
        say("ready\n");
    } else if (strcmp(what, "deaf") == 0) {
        go_deaf();
        say("ready\n");
    } else {
        say("ready\n");
    }
    stay();
}

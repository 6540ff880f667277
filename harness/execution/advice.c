/* Why no sandbox can be had, by the traces that the usual reasons leave. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "execution/probe.h"

/* The number in a file; -1: there is none. */
static long read_number(const char *path)
{
    long value = -1;
    FILE *file = fopen(path, "re");
    if (file != NULL && fscanf(file, "%ld", &value) != 1) {
        value = -1;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return value;
}

static bool in_path(const char *name)
{
    const char *path = getenv("PATH");
    EPG_AUTO_FREE char *all = epg_format("%s:/usr/local/bin:/usr/bin:/bin", path != NULL ? path : "");
    char *rest = NULL;
    for (char *entry = strtok_r(all, ":", &rest); entry != NULL; entry = strtok_r(NULL, ":", &rest)) {
        EPG_AUTO_FREE char *file = epg_format("%s/%s", entry, name);
        if (access(file, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

static bool in_container(void)
{
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv", "/run/systemd/container"};
    for (size_t i = 0; i < EPG_COUNT(marks); i++) {
        if (access(marks[i], F_OK) == 0) {
            return true;
        }
    }
    return getenv("container") != NULL || getenv("KUBERNETES_SERVICE_HOST") != NULL;
}

char *epg_containment_advice(void)
{
    if (!in_path("bwrap")) {
        return epg_strdup("install bubblewrap: apt install bubblewrap");
    }
    if (read_number("/proc/sys/user/max_user_namespaces") == 0) {
        return epg_strdup("this machine allows no user namespaces: sysctl -w user.max_user_namespaces=15000");
    }
    if (read_number("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
        return epg_strdup("this machine allows user namespaces to root only: sysctl -w "
                          "kernel.unprivileged_userns_clone=1");
    }
    if (in_container()) {
        return epg_strdup("this is a container, which keeps namespaces back: start it with --security-opt "
                          "seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined "
                          "(as root also --cap-add SYS_ADMIN), or work outside of it");
    }
    if (read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1) {
        return epg_strdup("AppArmor restricts user namespaces here (Ubuntu 23.10 and later): install apparmor-profiles "
                          "and enable its bwrap-userns-restrict profile, or sysctl -w "
                          "kernel.apparmor_restrict_unprivileged_userns=0");
    }
    return epg_strdup("the kernel or its security policy refuses this step: ask who runs this machine");
}

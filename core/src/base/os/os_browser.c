/* posix_spawn(3) of a browser, and getifaddrs(3). */
#include "oribi/base/os/os_process.h"

#include "oribi/base/os/os.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 8, COMMAND_CAP = 512 };

/* The first command of $BROWSER, whose commands stand between colons, as words; the link is the last one unless it has
 * a place. False: it is empty or too long. */
static bool split(const char *browser, const char *link, char command[COMMAND_CAP], char *words[WORDS_MAX + 2])
{
    size_t n = strcspn(browser, ":");
    size_t count = 0;
    bool placed = false;
    char *rest = NULL;
    if (n >= COMMAND_CAP)
        return false;
    memcpy(command, browser, n);
    command[n] = '\0';
    for (char *word = strtok_r(command, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (count == WORDS_MAX)
            return false;
        bool is_place = strcmp(word, "%s") == 0;
        words[count++] = is_place ? (char *)link : word;
        placed |= is_place;
    }
    if (count == 0)
        return false;
    if (!placed)
        words[count++] = (char *)link;
    words[count] = NULL;
    return true;
}

static int spawn(char **words)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    if (posix_spawn_file_actions_init(&files) != 0)
        return -1;
    int failed = 0;
    for (int fd = 0; fd <= 2; fd++)
        failed |= posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
    if (!failed)
        failed = oribi__os_spawn(words, &files, &pid);
    (void)posix_spawn_file_actions_destroy(&files);
    return failed ? -1 : 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

const char *oribi_os_open_browser(const char *link)
{
    char command[COMMAND_CAP];
    char *words[WORDS_MAX + 2] = {"xdg-open", (char *)link, NULL};
    if (is_set("BROWSER")) {
        if (!split(getenv("BROWSER"), link, command, words))
            return "BROWSER is no command";
        return spawn(words) < 0 ? "the command in BROWSER cannot be started" : NULL;
    }
    if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY"))
        return "there is neither BROWSER nor DISPLAY";
    return spawn(words) < 0 ? "xdg-open cannot be started, and BROWSER is not set" : NULL;
}

bool oribi_os_lan_address(char *dst, size_t cap)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_LOOPBACK) ||
            !(one->ifa_flags & IFF_UP))
            continue;
        const struct sockaddr_in *address = (const struct sockaddr_in *)(const void *)one->ifa_addr;
        found = inet_ntop(AF_INET, &address->sin_addr, dst, (socklen_t)cap) != NULL;
    }
    freeifaddrs(all);
    return found;
}

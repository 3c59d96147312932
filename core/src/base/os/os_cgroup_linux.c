/* Limits of this process' control groups: the way from its group up to the root, in both versions. */
#include "oribi/base/os/os_machine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int64_t lesser(int64_t value, int64_t other)
{
    return value < 0 || (other >= 0 && other < value) ? other : value;
}

/* A limit of any ancestor binds too, so the way up to the mount is walked. In a container whose own group is the
 * mount's root the path from /proc may not exist below it: those steps find nothing, and the root still counts. */
static int64_t least_up(const char *mount, const char *group, bool is_v2, oribi__group_fn read_limit)
{
    char dir[PATH_MAX];
    int64_t least = -1;
    size_t mount_len = strlen(mount);
    int n = snprintf(dir, sizeof(dir), "%s%s", mount, group);
    if (n < 0 || (size_t)n >= sizeof(dir))
        return -1;
    for (;;) {
        least = lesser(least, read_limit(dir, is_v2));
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < mount_len)
            return least;
        *slash = '\0';
    }
}

/* Is `name` one of the comma-separated controllers? */
static bool has_controller(const char *list, size_t n, const char *name)
{
    size_t name_len = strlen(name);
    for (const char *end = list + n; list < end;) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t len = (size_t)((comma ? comma : end) - list);
        if (len == name_len && memcmp(list, name, len) == 0)
            return true;
        list += len + 1;
    }
    return false;
}

/* A line "id:controllers:path" of /proc/self/cgroup; version 2 is "0::path" (cgroups(7)). */
static int64_t least_of_line(const char *root, char *line, const char *controller, oribi__group_fn read_limit)
{
    char mount[PATH_MAX];
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return -1;
    controllers++;
    size_t n = (size_t)(group - controllers);
    group++;
    if (n == 0) {
        (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup", root); /* cut: then nothing is found there */
        return least_up(mount, group, true, read_limit);
    }
    if (!has_controller(controllers, n, controller))
        return -1;
    (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%.*s", root, (int)n, controllers);
    int64_t least = least_up(mount, group, false, read_limit);
    (void)snprintf(mount, sizeof(mount), "%s/sys/fs/cgroup/%s", root, controller);
    return lesser(least, least_up(mount, group, false, read_limit));
}

int64_t oribi__os_groups_least(const char *root, const char *controller, oribi__group_fn read_limit)
{
    char path[PATH_MAX];
    char line[PATH_MAX];
    int64_t least = -1;
    /* cut only for a test's absurd root: then it does not open */
    (void)snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        least = lesser(least, least_of_line(root, line, controller, read_limit));
    (void)fclose(file); /* read only: nothing to lose */
    return least;
}

/* Opening log files; see the header for the rules. Reading order: oribi_log_file_open, open_somehow, open_as_root,
 * vet. */
#include "oribi/base/log.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINKS_MAX = 8,
    GROUPS_MAX = 1024,
    FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW,
    MODE = 0644,
};

/* --- descriptors by name --- */

/* The number that such a name stands for, or -1. */
static int stream_of(const char *path)
{
    static const struct {
        const char *name;
        int fd; /* -1: the number follows */
    } names[] = {{"/dev/stdout", 1}, {"/dev/stderr", 2}, {"/dev/fd/", -1}, {"/proc/self/fd/", -1}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = strlen(names[i].name);
        if (strncmp(path, names[i].name, n) != 0 || (names[i].fd >= 0 && path[n]))
            continue;
        if (names[i].fd >= 0)
            return names[i].fd;
        char *end;
        long fd = strtol(path + n, &end, 10);
        return path[n] >= '0' && path[n] <= '9' && !*end && fd <= INT_MAX ? (int)fd : -1;
    }
    return -1;
}

/* --- folders --- */

static void folder_of(const char *path, char dst[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    (void)snprintf(dst, PATH_MAX, "%.*s", n ? (int)n : 1, n ? path : "."); /* callers give paths shorter than that */
}

static bool is_roots_alone(const char *folder)
{
    struct stat file;
    return stat(folder, &file) == 0 && file.st_uid == 0 && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* In a folder with the sticky bit (/tmp), what is root's stays where it is. */
static bool is_held_by_sticky(const char *folder, const char *entry)
{
    struct stat file;
    struct stat below;
    return stat(folder, &file) == 0 && (file.st_mode & S_ISVTX) && file.st_uid == 0 && lstat(entry, &below) == 0 &&
           below.st_uid == 0;
}

/* Could the effective user replace a part of the path `folder`? Its last part aside: vet() checks what is opened
 * there. */
static bool may_redirect(const char *folder)
{
    char part[PATH_MAX];
    char next[PATH_MAX];
    for (const char *p = folder; (p = strchr(p, '/')) != NULL; p++) {
        const char *end = strchr(p + 1, '/');
        (void)snprintf(part, sizeof(part), "%.*s", p == folder ? 1 : (int)(p - folder), folder);
        (void)snprintf(next, sizeof(next), "%.*s", end ? (int)(end - folder) : (int)strlen(folder), folder);
        if (p[1] && faccessat(AT_FDCWD, part, W_OK, AT_EACCESS) == 0 && !is_held_by_sticky(part, next))
            return true;
    }
    return false;
}

/* The name as it was given, and where it leads. */
static bool is_out_of_reach(const char *folder)
{
    char real[PATH_MAX];
    return folder[0] == '/' && !may_redirect(folder) && realpath(folder, real) && !may_redirect(real);
}

/* --- acting as the owner --- */

struct identity {
    gid_t gid;
    int group_count;
    gid_t groups[GROUPS_MAX];
};

static bool become(const struct oribi_log_owner *owner, struct identity *before)
{
    gid_t gid = owner->gid == (gid_t)-1 ? getegid() : owner->gid;
    before->gid = getegid();
    before->group_count = getgroups(GROUPS_MAX, before->groups);
    if (before->group_count < 0)
        return false;
    bool done = owner->user ? initgroups(owner->user, gid) == 0 : setgroups(1, &gid) == 0;
    return done && setegid(gid) == 0 && seteuid(owner->uid) == 0;
}

/* Root may make all of these calls. If one fails nevertheless, the rights of the process are unknown, and it ends. */
static void come_back(const struct identity *before)
{
    int saved = errno;
    if (seteuid(0) < 0 || setegid(before->gid) < 0 || setgroups((size_t)before->group_count, before->groups) < 0)
        abort();
    errno = saved;
}

/* --- links --- */

/* A link to what is open here already opens nothing. */
static bool may_follow(const char *path, const struct stat *link, const char *target)
{
    char folder[PATH_MAX];
    int number = stream_of(target);
    folder_of(path, folder);
    if (number >= 0 && number <= STDERR_FILENO)
        return true;
    if (geteuid() == 0)
        return link->st_uid == 0 && is_roots_alone(folder);
    return link->st_uid == 0 || link->st_uid == geteuid();
}

/* Replaces `path` by what the link leads to. */
static int follow(char path[PATH_MAX])
{
    char target[PATH_MAX];
    char folder[PATH_MAX];
    struct stat entry;
    if (lstat(path, &entry) < 0)
        return oribi_os_fail();
    if (!S_ISLNK(entry.st_mode)) {
        errno = ELOOP; /* another process was faster */
        return oribi_os_fail();
    }
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return oribi_os_fail();
    target[n] = '\0';
    if (!may_follow(path, &entry, target))
        return oribi_os_fail_saying("it is a symbolic link of user %ld in a folder of others, which is not followed",
                                    (long)entry.st_uid);
    folder_of(path, folder);
    int len = target[0] == '/' ? snprintf(path, PATH_MAX, "%s", target)
                               : snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX / 2, folder, target);
    if (len < 0 || len >= PATH_MAX)
        return oribi_os_fail_saying("it is a link to a name that is too long");
    return 0;
}

/* --- files --- */

/* Checks the open file: its kind, and as root that no other user has put it there. */
static int vet(int fd, const struct oribi_log_owner *owner)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return oribi_os_fail();
    if (!S_ISREG(file.st_mode))
        return S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode)
                   ? 0
                   : oribi_os_fail_saying("it is no file, pipe or terminal");
    if (getuid() != 0)
        return 0;
    if (file.st_nlink != 1)
        return oribi_os_fail_saying("it has %lu names (hard links)", (unsigned long)file.st_nlink);
    if (owner && owner->uid != (uid_t)-1 && file.st_uid != 0 && file.st_uid != owner->uid)
        return oribi_os_fail_saying("it belongs to user %ld", (long)file.st_uid);
    return 0;
}

/* No user can make a link in /proc. */
static bool is_in_proc(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0;
}

static int open_file(const char *path)
{
    return oribi_os_lift(open(path, is_in_proc(path) ? FLAGS & ~(O_NOFOLLOW | O_CREAT) : FLAGS, MODE));
}

/* O_NONBLOCK was for the open only: a named pipe without a reader is an error then instead of a wait without end,
 * fifo(7). */
static int finish(int fd, const struct oribi_log_owner *owner, int *out)
{
    int code = vet(fd, owner);
    if (code == 0)
        code = oribi_os_set_nonblock(fd, false);
    if (code < 0)
        oribi_os_close(fd);
    else
        *out = fd;
    return code;
}

/* A file of root's is given to the workers' user, so that they can open it again after a rotation. */
static int open_as_root(const char *path, const struct oribi_log_owner *owner, int *out)
{
    struct stat file;
    int fd = open_file(path);
    if (fd < 0)
        return oribi_os_fail();
    int code = finish(fd, owner, out);
    bool give =
        code == 0 && owner && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == 0 && !is_in_proc(path);
    if (give && fchown(fd, owner->uid, owner->gid) < 0) {
        code = oribi_os_fail();
        oribi_os_close(fd);
    }
    return code;
}

/* Not a link, or ORIBI_AGAIN. */
static int open_plainly(const char *path, const struct oribi_log_owner *owner, int *out)
{
    int fd = open_file(path);
    if (fd < 0 && errno == ELOOP)
        return ORIBI_AGAIN;
    return fd < 0 ? oribi_os_fail() : finish(fd, owner, out);
}

static int open_for(const char *path, const struct oribi_log_owner *owner, int *out)
{
    char folder[PATH_MAX];
    struct identity before;
    struct stat entry;
    folder_of(path, folder);
    bool became = become(owner, &before);
    int fd = became ? open_file(path) : -1;
    int saved = errno;
    bool denied = !became || (fd < 0 && (saved == EACCES || saved == EPERM));
    bool out_of_reach = denied && became && is_out_of_reach(folder);
    come_back(&before);
    if (fd >= 0)
        return finish(fd, owner, out);
    if (lstat(path, &entry) == 0 && S_ISLNK(entry.st_mode))
        return ORIBI_AGAIN;
    if (out_of_reach)
        return open_as_root(path, owner, out);
    if (denied && became)
        return oribi_os_fail_saying("permission denied for user %ld, who may write a folder on the way there",
                                    (long)owner->uid);
    errno = saved;
    return oribi_os_fail();
}

static int open_somehow(const char *path, const struct oribi_log_owner *owner, int *out)
{
    if (geteuid() != 0 || !owner)
        return open_plainly(path, owner, out);
    if (owner->uid != (uid_t)-1 && owner->uid != 0)
        return open_for(path, owner, out);
    struct stat entry;
    if (lstat(path, &entry) == 0 && S_ISLNK(entry.st_mode))
        return ORIBI_AGAIN;
    return open_as_root(path, owner, out); /* the user stays, the group does not */
}

int oribi_log_file_open(const char *path, const struct oribi_log_owner *owner, int *fd, bool *stream)
{
    char name[PATH_MAX];
    *stream = false;
    int code = oribi_os_absolute_path(path, name, sizeof(name));
    for (int links = 0; code == 0 && links <= LINKS_MAX; links++) {
        int number = stream_of(name);
        if (number >= 0) {
            *fd = oribi_os_dup(number);
            *stream = *fd >= 0;
            return *fd < 0 ? *fd : 0;
        }
        code = open_somehow(name, owner, fd);
        if (code != ORIBI_AGAIN)
            return code;
        code = follow(name);
    }
    return code < 0 ? code : oribi_os_fail_saying("too many links");
}

#include "oribi/server/pid_file.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/server/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCK_TRIES_MAX = 10,
    DRAFT_NAMES_MAX = 10, /* servers that died in their first moments with our pid may have left some */
};

static int complain(const char *path, const char *what, char *error)
{
    (void)oribi_os_fail();
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "pid_file: cannot %s %.120s: %s", what, path, oribi_os_error_text());
    return ORIBI_ESYS;
}

/* NULL without memory: an upgrade for which there is none must not end the server. */
static char *absolute(const char *path)
{
    char dir[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(dir, sizeof(dir)))
        dir[0] = '\0'; /* then it stays relative */
    size_t cap = strlen(dir) + strlen(path) + 2;
    char *text = oribi_mem_try_alloc(cap, 1);
    if (text)
        (void)snprintf(text, cap, "%s%s%s", dir, dir[0] ? "/" : "", path); /* fits by construction */
    return text;
}

/* Whether the path still leads to the file that we have open: its last owner may have removed it between our open and our lock. */
static bool still_there(int fd, const char *path)
{
    struct stat ours;
    struct stat named;
    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static int held_by_other(int fd, const char *path, char *error)
{
    char text[32] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? strcspn(text, "\n") : 0] = '\0';
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "pid_file: %.120s belongs to a running server, pid %s", path, text);
    return ORIBI_ELIMIT;
}

static int no_memory(struct oribi_pid_file *file, const char *path, char *error)
{
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "pid_file: out of memory for %.120s", path);
    oribi_pid_file_forget(file);
    return ORIBI_ESYS;
}

/* A locked file of another name, which oribi_pid_file_write() links to the path: whoever looks for a pid file finds none, or one with a pid in it. */
static int draft(struct oribi_pid_file *file, const char *path, char *error)
{
    size_t cap = strlen(path) + 32;
    char *name = oribi_mem_try_alloc(cap, 1);
    if (!name)
        return no_memory(file, path, error);
    int fd = -1;
    for (int i = 0; fd < 0 && i < DRAFT_NAMES_MAX; i++) {
        (void)snprintf(name, cap, "%s.%ld-%d", path, (long)getpid(), i); /* fits by construction */
        fd = oribi_os_lift(open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int code = complain(path, fd < 0 ? "open" : "lock", error);
        if (fd >= 0)
            (void)unlink(name); /* ours: nobody else takes it for anything */
        oribi_os_close(fd);
        oribi_mem_free(name);
        return code;
    }
    *file = (struct oribi_pid_file){.fd = fd, .path = absolute(name), .wanted = absolute(path)};
    if (!file->path || !file->wanted)
        (void)unlink(name);
    oribi_mem_free(name);
    return file->path && file->wanted ? 0 : no_memory(file, path, error);
}

int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error)
{
    struct stat entry;
    *file = (struct oribi_pid_file){.fd = -1};
    for (int tries = 0; tries < LOCK_TRIES_MAX; tries++) {
        int fd = oribi_os_lift(open(path, O_RDWR | O_CLOEXEC));
        if (fd < 0 && errno == ENOENT) {
            if (lstat(path, &entry) < 0)
                return draft(file, path, error);
            fd = oribi_os_lift(
                open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)); /* a link that leads nowhere so far */
        }
        if (fd < 0)
            return complain(path, "open", error);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            int code = oribi_os_fail() == ORIBI_AGAIN ? held_by_other(fd, path, error) : complain(path, "lock", error);
            oribi_os_close(fd);
            return code;
        }
        if (still_there(fd, path)) {
            *file = (struct oribi_pid_file){.fd = fd, .path = absolute(path)};
            return file->path ? 0 : no_memory(file, path, error);
        }
        oribi_os_close(fd);
    }
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "pid_file: %.120s is replaced all the time", path);
    return ORIBI_ESYS;
}

static int write_pid(struct oribi_pid_file *file, char *error)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* Written first, so that it is the writing that fails where there is no room. */
    if (pwrite(file->fd, text, (size_t)n, 0) == n && ftruncate(file->fd, n) == 0)
        return 0;
    (void)complain(oribi_pid_file_name(file), "write", error);
    oribi_pid_file_remove(file);
    return ORIBI_ESYS;
}

/* 0, ORIBI_AGAIN when somebody was faster, or ORIBI_ESYS. link(2) does not replace what is there; where a file system has no links, rename(2) must do,
 * and of two servers that start in the same moment both go on. */
static int publish(struct oribi_pid_file *file)
{
    if (link(file->path, file->wanted) == 0)
        (void)unlink(file->path); /* a second name does no harm */
    else if (errno == EEXIST)
        return ORIBI_AGAIN;
    else if (rename(file->path, file->wanted) < 0)
        return ORIBI_ESYS;
    oribi_mem_free(file->path);
    file->path = file->wanted;
    file->wanted = NULL;
    return 0;
}

int oribi_pid_file_write(struct oribi_pid_file *file, char *error)
{
    for (int tries = 0; tries < LOCK_TRIES_MAX; tries++) {
        int code = write_pid(file, error);
        if (code < 0)
            return code;
        if (file->wanted)
            code = publish(file);
        if (code == 0)
            return 0;
        char *path = file->wanted;
        file->wanted = NULL;
        if (code != ORIBI_AGAIN)
            (void)complain(path, "create", error);
        oribi_pid_file_remove(file);
        if (code == ORIBI_AGAIN)
            code = oribi_pid_file_lock(file, path, error);
        oribi_mem_free(path);
        if (code < 0)
            return code;
    }
    (void)snprintf(error, ORIBI_OPTIONS_ERROR_CAP, "pid_file: %.120s is replaced all the time",
                   oribi_pid_file_name(file));
    oribi_pid_file_remove(file);
    return ORIBI_ESYS;
}

const char *oribi_pid_file_name(const struct oribi_pid_file *file)
{
    return file->wanted ? file->wanted : file->path;
}

int oribi_pid_file_rename(struct oribi_pid_file *file, const char *path)
{
    if (file->fd < 0)
        return 0;
    char *named = absolute(path);
    if (!named || rename(file->path, path) < 0) {
        (void)oribi_os_fail();
        oribi_mem_free(named);
        return ORIBI_ESYS;
    }
    oribi_mem_free(file->path);
    file->path = named;
    return 0;
}

void oribi_pid_file_remove(struct oribi_pid_file *file)
{
    struct stat entry;
    bool ours = file->fd >= 0 && still_there(file->fd, file->path);
    if (ours && fstat(file->fd, &entry) == 0 && S_ISREG(entry.st_mode)) /* never a device that somebody named */
        (void)unlink(file->path);                                       /* nothing can be done about it at the end */
    oribi_pid_file_forget(file);
}

void oribi_pid_file_forget(struct oribi_pid_file *file)
{
    oribi_os_close(file->fd);
    oribi_mem_free(file->path);
    oribi_mem_free(file->wanted);
    *file = (struct oribi_pid_file){.fd = -1};
}

#include "oribi/server/pid_file.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/server/options.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCK_TRIES_MAX = 10 };

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

int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error)
{
    *file = (struct oribi_pid_file){.fd = -1};
    for (int tries = 0; tries < LOCK_TRIES_MAX; tries++) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
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

int oribi_pid_file_write(struct oribi_pid_file *file, char *error)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    /* Written first, so that it is the writing that fails where there is no room. */
    if (pwrite(file->fd, text, (size_t)n, 0) == n && ftruncate(file->fd, n) == 0)
        return 0;
    (void)complain(file->path, "write", error);
    oribi_pid_file_remove(file);
    return ORIBI_ESYS;
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
    *file = (struct oribi_pid_file){.fd = -1};
}

/* One server for each pid file. A file is stale unless a process holds a write lock on it, which takes a descriptor
 * that may write: whoever may only read the file can lock it too (flock(2), or a read lock), and is not asked. So a
 * lock is looked for on a file that is there, and taken only on a fresh one of ours.
 *
 *   lock: there is a live one? ──no──► a draft of another name, locked
 *   write: pid into the draft ──► link(2) to the path, which fails where a file is ──► stale? moved away, and again
 *
 * Links are not followed, and what is no pid file of ours is not touched. Reading order: oribi_pid_file_lock,
 * look_at, draft; oribi_pid_file_write, publish. */
#include "oribi/supervisor/pid_file.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TRIES_MAX = 10,
    DRAFT_NAMES_MAX = 10, /* servers that died in their first moments with our pid may have left some */
    TEXT_MAX = 24,        /* a pid, and the newline behind it */
};

static int complain(const char *path, const char *what, char *error)
{
    (void)oribi_os_fail();
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "pid_file: cannot %s %.120s: %s", what, path, oribi_os_error_text());
    return ORIBI_ESYS;
}

__attribute__((format(printf, 3, 4))) static int refuse(const char *path, char *error, const char *format, ...)
{
    char why[96];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args); /* cut when longer */
    va_end(args);
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "pid_file: %.120s %s", path, why);
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

static int no_memory(struct oribi_pid_file *file, const char *path, char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "pid_file: out of memory for %.120s", path);
    oribi_pid_file_forget(file);
    return ORIBI_ESYS;
}

/* Whether the path leads to the file that we have open. */
static bool still_there(int fd, const char *path)
{
    struct stat ours;
    struct stat named;
    return fstat(fd, &ours) == 0 && lstat(path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

/* --- what is at the path --- */

/* Is there a process that may write this file and says so? */
static bool is_held(int fd)
{
    struct flock held = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return oribi_os_lock_query(fd, &held) == 0 && held.l_type == F_WRLCK;
}

static int hold(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return oribi_os_lock_try(fd, &whole);
}

/* A file of ours has a pid in it, or nothing yet. */
static bool is_pid_text(const char *text, ssize_t n)
{
    size_t digits = strspn(text, "0123456789");
    return n >= 0 && n <= TEXT_MAX && (digits == (size_t)n || (digits > 0 && strcmp(text + digits, "\n") == 0));
}

/* A stale pid file of ours (0); one that another server has just removed (ORIBI_AGAIN); a live server's
 * (ORIBI_ELIMIT); or something that is not ours to replace. */
static int judge(int fd, const char *path, char *error)
{
    struct stat file;
    char text[TEXT_MAX + 2] = "";
    if (fstat(fd, &file) < 0)
        return complain(path, "read", error);
    if (!S_ISREG(file.st_mode))
        return refuse(path, error, "is not a regular file");
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    if (!is_pid_text(text, n))
        return refuse(path, error, "holds something else than a pid: not replaced");
    text[strcspn(text, "\n")] = '\0';
    if (is_held(fd)) {
        (void)refuse(path, error, "belongs to a running server, pid %s", text);
        return ORIBI_ELIMIT;
    }
    if (file.st_nlink == 0)
        return ORIBI_AGAIN;
    if (file.st_nlink != 1)
        return refuse(path, error, "has %lu names (hard links): not replaced", (unsigned long)file.st_nlink);
    if (file.st_uid != geteuid())
        return refuse(path, error, "belongs to user %ld: not replaced", (long)file.st_uid);
    return 0;
}

static int look_once(const char *path, int *fd, char *error)
{
    *fd = oribi_os_lift(open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (*fd < 0 && errno == ENOENT)
        return 0;
    if (*fd < 0 && errno == ELOOP)
        return refuse(path, error, "is a symbolic link, which is not followed");
    if (*fd < 0)
        return complain(path, "open", error);
    int code = judge(*fd, path, error);
    if (code < 0) {
        oribi_os_close(*fd);
        *fd = -1;
    }
    return code;
}

/* 0: nothing is there, *fd -1, or a stale file, which *fd is open on; or why not. */
static int look_at(const char *path, int *fd, char *error)
{
    int code = ORIBI_AGAIN;
    for (int tries = 0; code == ORIBI_AGAIN && tries < TRIES_MAX; tries++)
        code = look_once(path, fd, error);
    return code == ORIBI_AGAIN ? refuse(path, error, "is replaced all the time") : code;
}

/* --- ours --- */

/* No other process can lock it first: until then no other user may open it. */
static int open_draft(const char *name)
{
    int fd = oribi_os_lift(open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd >= 0 && (hold(fd) < 0 || fchmod(fd, 0644) < 0)) {
        int saved = errno;
        (void)unlink(name); /* ours: no other program uses the name */
        oribi_os_close(fd);
        errno = saved;
        fd = -1;
    }
    return fd;
}

/* A locked file of another name, which oribi_pid_file_write() links to the path: whoever looks for a pid file finds
 * none, the stale one, or one with our pid. */
static int draft(struct oribi_pid_file *file, const char *path, char *error)
{
    size_t cap = strlen(path) + 32;
    char *name = oribi_mem_try_alloc(cap, 1);
    if (!name)
        return no_memory(file, path, error);
    int fd = -1;
    for (int i = 0; fd < 0 && i < DRAFT_NAMES_MAX; i++) {
        (void)snprintf(name, cap, "%s.%ld-%d", path, (long)getpid(), i); /* fits by construction */
        fd = open_draft(name);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        int code = complain(path, "open", error);
        oribi_mem_free(name);
        return code;
    }
    *file = (struct oribi_pid_file){.fd = fd, .path = absolute(name), .wanted = absolute(path)};
    if (!file->path || !file->wanted)
        (void)unlink(name);
    oribi_mem_free(name);
    return file->path && file->wanted ? 0 : no_memory(file, path, error);
}

int oribi_pid_file_look(const char *path, char *error)
{
    int stale;
    int code = look_at(path, &stale, error);
    oribi_os_close(stale);
    return code;
}

int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error)
{
    int stale;
    *file = (struct oribi_pid_file){.fd = -1};
    int code = look_at(path, &stale, error);
    oribi_os_close(stale);
    return code < 0 ? code : draft(file, path, error);
}

static int write_pid(struct oribi_pid_file *file, char *error)
{
    char text[TEXT_MAX + 1];
    int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (pwrite(file->fd, text, (size_t)n, 0) == n)
        return 0;
    return complain(oribi_pid_file_name(file), "write", error);
}

/* Moves a stale file out of the way, and only that: should another server have put its own there since we looked, it
 * is put back. */
static int move_away(const struct oribi_pid_file *file, int stale, char *error)
{
    size_t cap = strlen(file->path) + 8;
    char *aside = oribi_mem_try_alloc(cap, 1);
    if (!aside)
        return refuse(file->wanted, error, "cannot be replaced: out of memory");
    (void)snprintf(aside, cap, "%s.stale", file->path); /* fits */
    int code = 0;
    if (rename(file->wanted, aside) < 0) {
        if (errno != ENOENT)
            code = complain(file->wanted, "replace", error);
    } else {
        if (!still_there(stale, aside) && link(aside, file->wanted) < 0 &&
            errno != EEXIST) /* else a third one is the one */
            code = complain(file->wanted, "put back", error);
        (void)unlink(aside); /* nothing can be done about it */
    }
    oribi_mem_free(aside);
    return code;
}

/* 0, ORIBI_AGAIN after a stale file has gone, or why not. link(2) does not replace what is there; where a file
 * system has no links, rename(2) must do, and of two servers that start in the same moment both go on. */
static int publish(struct oribi_pid_file *file, char *error)
{
    int stale = -1;
    if (link(file->path, file->wanted) == 0) {
        (void)unlink(file->path);
    } else if (errno == EEXIST) {
        int code = look_at(file->wanted, &stale, error);
        if (code == 0 && stale >= 0)
            code = move_away(file, stale, error);
        oribi_os_close(stale);
        return code < 0 ? code : ORIBI_AGAIN;
    } else if (rename(file->path, file->wanted) < 0) {
        return complain(file->wanted, "create", error);
    }
    oribi_mem_free(file->path);
    file->path = file->wanted;
    file->wanted = NULL;
    return 0;
}

int oribi_pid_file_write(struct oribi_pid_file *file, char *error)
{
    int code = write_pid(file, error);
    for (int tries = 0; code == 0 && file->wanted && tries < TRIES_MAX; tries++) {
        code = publish(file, error);
        if (code == ORIBI_AGAIN)
            code = 0;
    }
    if (code == 0 && file->wanted)
        code = refuse(file->wanted, error, "is replaced all the time");
    if (code < 0)
        oribi_pid_file_remove(file);
    return code;
}

const char *oribi_pid_file_name(const struct oribi_pid_file *file)
{
    return file->wanted ? file->wanted : file->path;
}

int oribi_pid_file_rename(struct oribi_pid_file *file, const char *path)
{
    if (file->fd < 0)
        return 0;
    int there;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (look_at(path, &there, error) < 0)
        return oribi_os_fail_saying("%s", error);
    oribi_os_close(there);
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
    if (file->fd >= 0 && still_there(file->fd, file->path))
        (void)unlink(file->path); /* nothing can be done about it at the end */
    oribi_pid_file_forget(file);
}

void oribi_pid_file_forget(struct oribi_pid_file *file)
{
    oribi_os_close(file->fd);
    oribi_mem_free(file->path);
    oribi_mem_free(file->wanted);
    *file = (struct oribi_pid_file){.fd = -1};
}

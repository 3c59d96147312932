/* Opening beneath a folder: in one call where the system has one (os_beneath_linux.c, os_beneath_portable.c), else one
 * openat(2) for each part of the path. Reading order: verdict_of, open_steps, then what is no file. */
#include "files/os_beneath.h"

#include "oribi/base/error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A socket and a device without a driver give ENXIO or ENODEV: the caller looks which it is. */
int oribi__beneath_verdict(void)
{
    switch (errno) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
        return ORIBI_FILE_MISSING;
    case EACCES:
    case EPERM:
        return ORIBI_FILE_DENIED;
    case ENXIO:
    case ENODEV:
        return ORIBI_FILE_DEVICE;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return ORIBI_FILE_LIMIT;
    case ELOOP:
        return ORIBI__BENEATH_LINK;
    case EAGAIN: /* a name was changed below openat2(2), or another process has a lease on the file, fcntl(2) */
        return ORIBI__BENEATH_LINK;
    default:
        (void)oribi_os_fail(); /* for its text */
        return ORIBI_FILE_FAILED;
    }
}

/* --- step by step --- */

/* With O_DIRECTORY a link is ENOTDIR like a file; only looking tells them apart. */
static int open_step(int folder_fd, const char *name, int flags, int *fd)
{
    int got;
    do
        got = oribi_os_lift(openat(folder_fd, name, flags | O_NOFOLLOW));
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == ENOTDIR ? ORIBI__BENEATH_LINK : oribi__beneath_verdict();
    *fd = got;
    return ORIBI_FILE_OK;
}

/* On Linux looking opens a link itself: O_PATH | O_NOFOLLOW. */
static int open_last(int folder_fd, const char *name, int flags, enum oribi__beneath_for purpose, int *fd)
{
    struct stat file;
    int got;
    int code = open_step(folder_fd, name, flags, &got);
    if (code != ORIBI_FILE_OK)
        return code;
    if (purpose == ORIBI__FOR_LOOKING && fstat(got, &file) == 0 && S_ISLNK(file.st_mode)) {
        oribi_os_close(got);
        return ORIBI__BENEATH_LINK;
    }
    *fd = got;
    return ORIBI_FILE_OK;
}

static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The folder at hand is the caller's for the first step, then ours. */
static int open_steps(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    int flags = oribi__beneath_flags(purpose);
    char name[NAME_MAX + 1];
    int at = folder_fd;
    int code = ORIBI_FILE_OK;
    for (;;) {
        size_t n = strcspn(path, "/");
        bool is_last = path[n + (path[n] == '/')] == '\0';
        int own_flags = !is_last ? oribi__beneath_folder_flags() : path[n] == '/' ? flags | O_DIRECTORY : flags;
        int next = -1;
        if (n > NAME_MAX) {
            code = ORIBI_FILE_MISSING;
            break;
        }
        memcpy(name, path, n);
        name[n] = '\0';
        code = !is_plain_name(name) ? ORIBI__BENEATH_LINK
               : is_last            ? open_last(at, name, own_flags, purpose, &next)
                                    : open_step(at, name, own_flags, &next);
        if (code != ORIBI_FILE_OK)
            break;
        if (at != folder_fd)
            oribi_os_close(at);
        at = next;
        if (is_last) {
            *fd = at;
            return ORIBI_FILE_OK;
        }
        path += n + 1;
    }
    if (at != folder_fd)
        oribi_os_close(at);
    return code;
}

bool oribi__beneath_has_openat2(int folder_fd)
{
    int fd;
    if (oribi__beneath_follow(folder_fd, ".", ORIBI__FOR_LOOKING, &fd) != ORIBI_FILE_OK)
        return false;
    oribi_os_close(fd);
    return true;
}

int oribi__beneath_open(int folder_fd, const char *path, enum oribi__beneath_for purpose, bool openat2, int *fd)
{
    if (strcmp(path, ".") == 0)
        return open_step(folder_fd, path, oribi__beneath_flags(purpose), fd);
    int code = openat2 ? oribi__beneath_unlinked(folder_fd, path, purpose, fd) : ORIBI__BENEATH_ABSENT;
    return code == ORIBI__BENEATH_ABSENT ? open_steps(folder_fd, path, purpose, fd) : code;
}

/* --- what is there --- */

static enum oribi_file_verdict kind_of(const struct stat *file)
{
    switch (file->st_mode & S_IFMT) {
    case S_IFREG:
        return ORIBI_FILE_OK;
    case S_IFDIR:
        return ORIBI_FILE_FOLDER;
    case S_IFIFO:
        return ORIBI_FILE_FIFO;
    case S_IFSOCK:
        return ORIBI_FILE_SOCKET;
    default:
        return ORIBI_FILE_DEVICE;
    }
}

/* The path was resolved up to its last part: a link before that is a new one. EINVAL: the last part is no link now. */
static int look_failed(void)
{
    if (errno == EINVAL)
        return ORIBI_FILE_CHANGING;
    int code = oribi__beneath_verdict();
    return code == ORIBI__BENEATH_LINK ? ORIBI_FILE_CHANGING : code;
}

int oribi__beneath_look(int folder_fd, const char *path, char *target, size_t cap)
{
    struct stat file;
    if (fstatat(folder_fd, path, &file, AT_SYMLINK_NOFOLLOW) < 0)
        return look_failed();
    if (!S_ISLNK(file.st_mode))
        return kind_of(&file);
    ssize_t n = readlinkat(folder_fd, path, target, cap);
    if (n < 0)
        return look_failed();
    if ((size_t)n == cap)
        return ORIBI_FILE_MISSING; /* no link of ours is that long, but /proc may have some */
    target[n] = '\0';
    return ORIBI__BENEATH_LINK;
}

static void fill_info(const struct stat *file, struct oribi_file_info *info)
{
    *info = (struct oribi_file_info){
        .device = (uint64_t)file->st_dev,
        .inode = (uint64_t)file->st_ino,
        .size = (int64_t)file->st_size,
        .mtime_s = (int64_t)file->st_mtim.tv_sec,
        .mtime_ns = (uint32_t)file->st_mtim.tv_nsec,
        .ctime_s = (int64_t)file->st_ctim.tv_sec,
        .ctime_ns = (uint32_t)file->st_ctim.tv_nsec,
        .stored = file->st_blocks > 0,
    };
}

enum oribi_file_verdict oribi__beneath_kind(int fd, struct oribi_file_info *info)
{
    struct stat file;
    if (fstat(fd, &file) < 0) {
        (void)oribi_os_fail(); /* for its text */
        return ORIBI_FILE_FAILED;
    }
    enum oribi_file_verdict kind = kind_of(&file);
    if (kind == ORIBI_FILE_OK)
        fill_info(&file, info);
    return kind;
}

bool oribi_file_look(int fd, struct oribi_file_info *info)
{
    return oribi__beneath_kind(fd, info) == ORIBI_FILE_OK;
}

ssize_t oribi__beneath_read(int fd, void *dst, size_t n, int64_t offset)
{
    for (;;) {
        ssize_t got = pread(fd, dst, n, (off_t)offset);
        if (got >= 0)
            return got;
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

/* An empty file has no byte, another one has its last. A file that is one hole has no blocks either, and passes. */
bool oribi_file_size_is_doubtful(int fd, const struct oribi_file_info *info)
{
    char byte;
    if (info->stored)
        return false;
    int64_t last = info->size > 0 ? info->size - 1 : 0;
    return oribi__beneath_read(fd, &byte, 1, last) != (info->size > 0);
}

/* --- folders --- */

/* The name may become another folder's between the two calls; then both are made again. */
int oribi__beneath_folder(const char *path, int *fd, char *real, size_t cap)
{
    assert(cap >= PATH_MAX);
    for (int attempt = 0; attempt < ORIBI_ROOT_ATTEMPTS_MAX; attempt++) {
        struct oribi_fd_mark mark;
        int got = oribi_os_lift(open(path, oribi__beneath_folder_flags()));
        if (got < 0)
            return oribi_os_fail();
        if (!realpath(path, real)) {
            int code = oribi_os_fail();
            oribi_os_close(got);
            return code;
        }
        if (oribi__beneath_folder_mark(real, &mark) == 0 && oribi_os_is_marked(got, &mark)) {
            *fd = got;
            return 0;
        }
        oribi_os_close(got);
    }
    return oribi_os_fail_saying("the folder was another one at each of %d looks", ORIBI_ROOT_ATTEMPTS_MAX);
}

int oribi__beneath_folder_mark(const char *path, struct oribi_fd_mark *mark)
{
    struct stat file;
    if (stat(path, &file) < 0)
        return oribi_os_fail();
    *mark = (struct oribi_fd_mark){(uint64_t)file.st_dev, (uint64_t)file.st_ino};
    return 0;
}

/* The folder of certificates by ACME; see acme.h. */
#include "frontend/acme.h"

#include "oribi/base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 16 * 1024, STATE_MAX = 4096 };

static int refuse(char *error, const char *path, const char *todo)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.120s: %.60s%s%s", path, oribi_os_error_text(), *todo ? "; " : "",
                   todo);
    return ORIBI_ESYS;
}

static int fail(char *error, const char *path, const char *todo)
{
    (void)oribi_os_fail(); /* keeps the words */
    return refuse(error, path, todo);
}

/* --- folders --- */

/* A folder of that path with all above it, which other users may enter. */
static int make_all(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    for (size_t i = 1; i <= n && i < sizeof(part); i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, path[i] ? 0755 : mode) < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* DIR/word, of the client's user. A link in its place would give another folder away. */
static int make_own(const struct oribi__acme_store *store, const char *word, char *error)
{
    char path[PATH_MAX];
    struct stat found;
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", store->dir, word) >= sizeof(path)) {
        (void)oribi_os_fail_saying("the path is too long");
        return refuse(error, store->dir, "");
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail(error, path, "");
    if (lstat(path, &found) < 0)
        return fail(error, path, "");
    if (!S_ISDIR(found.st_mode)) {
        (void)oribi_os_fail_saying("this is no folder");
        return refuse(error, path, "remove it");
    }
    if (store->switches && (found.st_uid != store->uid || found.st_gid != store->gid) &&
        lchown(path, store->uid, store->gid) < 0)
        return fail(error, path, "");
    if ((found.st_mode & 0777) != 0700 && chmod(path, 0700) < 0)
        return fail(error, path, "");
    return 0;
}

/* A user that may write in DIR may replace keys, and put links in the places of folders that the client gets. */
static bool is_for_others(const struct oribi__acme_store *store, const struct stat *found)
{
    bool is_other = store->switches && store->uid != geteuid();
    return (found->st_mode & S_IWOTH) || (is_other && found->st_uid == store->uid) ||
           (is_other && (found->st_mode & S_IWGRP) && found->st_gid == store->gid);
}

int oribi__acme_store_open(struct oribi__acme_store *store, char *error)
{
    struct stat found;
    store->lock_fd = -1;
    if (make_all(store->dir, 0755) < 0)
        return fail(error, store->dir, "let this user make that folder, or set acme_dir");
    if (stat(store->dir, &found) < 0)
        return fail(error, store->dir, "");
    if (!S_ISDIR(found.st_mode)) {
        (void)oribi_os_fail_saying("this is no folder");
        return refuse(error, store->dir, "set acme_dir");
    }
    if (is_for_others(store, &found)) {
        (void)oribi_os_fail_saying("another user than the server's may write there");
        return refuse(error, store->dir, "chown it to the server's user, and chmod 755");
    }
    if (access(store->dir, W_OK) < 0)
        return fail(error, store->dir, "let this user write there, or set acme_dir");
    int code = make_own(store, "account", error);
    return code < 0 ? code : make_own(store, "request", error);
}

int oribi__acme_store_lock(struct oribi__acme_store *store, char *error)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/lock", store->dir); /* DIR/account was shorter than the cap */
    int fd = oribi_os_lift(open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0)
        return fail(error, path, "");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        bool busy = errno == EWOULDBLOCK;
        int code = busy ? ORIBI_AGAIN : fail(error, path, "");
        oribi_os_close(fd);
        return code;
    }
    store->lock_fd = fd;
    return 0;
}

bool oribi__acme_store_is_locked(const struct oribi__acme_store *store)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/lock", store->dir);                          /* fits, as above */
    int fd = oribi_os_lift(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW)); /* it may be a pipe */
    bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    oribi_os_close(fd);
    return locked;
}

/* --- files --- */

/* A pipe is not waited for. */
static int read_file(const char *path, int flags, struct oribi_buf *out, char *error)
{
    int64_t size;
    int fd = oribi_os_lift(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags));
    if (fd < 0)
        return errno == ENOENT ? 1 : fail(error, path, "");
    if (!oribi_os_is_file(fd, &size)) {
        oribi_os_close(fd);
        (void)oribi_os_fail_saying("it is not a regular file");
        return refuse(error, path, "");
    }
    ssize_t n;
    do {
        n = oribi_os_read(fd, oribi_buf_reserve(out, READ_STEP), READ_STEP);
        out->len += n > 0 ? (size_t)n : 0;
    } while (n > 0 && out->len <= ORIBI__ACME_FILE_MAX);
    oribi_os_close(fd);
    if (n < 0)
        return refuse(error, path, "");
    if (n == 0)
        return 0;
    (void)oribi_os_fail_saying("the file is longer than %d bytes", ORIBI__ACME_FILE_MAX);
    return refuse(error, path, "");
}

int oribi__acme_store_read(const char *path, struct oribi_buf *out, char *error)
{
    return read_file(path, 0, out, error);
}

int oribi__acme_store_take(const char *path, struct oribi_buf *out, char *error)
{
    return read_file(path, O_NOFOLLOW, out, error);
}

/* A new file at `path`, synced; what was there is gone, and so is what could not be written whole. */
static int make_file(const char *path, struct oribi_slice text, uid_t uid, gid_t gid, bool chowns, char *error)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return fail(error, path, "");
    int fd = oribi_os_lift(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0)
        return fail(error, path, "");
    int code = oribi_os_write_all(fd, text.p, text.n) < 0 ? refuse(error, path, "is the disk full?") : 0;
    if (code == 0 && fsync(fd) < 0)
        code = fail(error, path, "is the disk full?");
    if (code == 0 && chowns && fchown(fd, uid, gid) < 0)
        code = fail(error, path, "");
    oribi_os_close(fd);
    if (code < 0)
        (void)unlink(path); /* half a file is of no use; it may be gone */
    return code;
}

int oribi__acme_store_put(const struct oribi__acme_store *store, const char *path, struct oribi_slice text,
                          bool for_client, char *error)
{
    return make_file(path, text, store->uid, store->gid, for_client && store->switches, error);
}

int oribi__acme_store_check(const char *path, char *error)
{
    struct stat found;
    if (lstat(path, &found) < 0)
        return errno == ENOENT ? 0 : fail(error, path, "");
    if (S_ISREG(found.st_mode) || S_ISLNK(found.st_mode))
        return 0;
    (void)oribi_os_fail_saying("it is not a regular file");
    return refuse(error, path, "remove it");
}

/* The new name is on disk when its folder is (fsync(2)). */
static int sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = oribi_os_lift(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int result = fd < 0 ? -1 : fsync(fd);
    oribi_os_close(fd);
    return result;
}

int oribi__acme_store_install(const char *path, struct oribi_slice text, char *error)
{
    char fresh[PATH_MAX];
    if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", path) >= sizeof(fresh)) {
        (void)oribi_os_fail_saying("the path is too long");
        return refuse(error, path, "");
    }
    int code = make_file(fresh, text, 0, 0, false, error);
    if (code < 0)
        return code;
    if (rename(fresh, path) < 0) {
        code = fail(error, path, "");
        (void)unlink(fresh); /* the next one replaces it in any case */
        return code;
    }
    (void)sync_folder(path); /* a file system that cannot: the name comes with its next write */
    return 0;
}

/* --- state --- */

static bool state_path(const struct oribi__acme_store *store, const char *name, char path[PATH_MAX])
{
    return (size_t)snprintf(path, PATH_MAX, "%s/%s.state", store->dir, name) < PATH_MAX;
}

/* "failures N\ntried N\nreason TEXT\n". What cannot be read counts as nothing. */
void oribi__acme_state_read(const struct oribi__acme_store *store, const char *name, struct oribi_acme_facts *facts,
                            char *reason)
{
    struct oribi_buf text = {0};
    char path[PATH_MAX];
    char ignored[ORIBI_ERROR_TEXT_CAP];
    unsigned failures = 0;
    long long tried_s = 0;
    int at = 0;
    reason[0] = '\0';
    facts->failures = 0;
    facts->tried_s = 0;
    if (state_path(store, name, path) && oribi__acme_store_read(path, &text, ignored) == 0 && text.len < STATE_MAX) {
        oribi_buf_append(&text, "", 1);
        if (sscanf(text.p, "failures %9u\ntried %18lld\nreason%n", &failures, &tried_s, &at) == 2 && at > 0) {
            facts->failures = failures;
            facts->tried_s = tried_s;
            const char *why = text.p + at + (text.p[at] == ' ');
            (void)snprintf(reason, ORIBI_ACME_REASON_MAX + 1, "%.*s", (int)strcspn(why, "\n"), why);
        }
    }
    oribi_buf_deinit(&text);
}

int oribi__acme_state_write(const struct oribi__acme_store *store, const char *name,
                            const struct oribi_acme_facts *facts, const char *reason, char *error)
{
    char path[PATH_MAX];
    char text[STATE_MAX];
    if (!state_path(store, name, path)) {
        (void)oribi_os_fail_saying("the path is too long");
        return refuse(error, store->dir, "");
    }
    int n = snprintf(text, sizeof(text), "failures %u\ntried %lld\nreason %.*s\n", facts->failures,
                     (long long)facts->tried_s, ORIBI_ACME_REASON_MAX, reason); /* fits */
    return oribi__acme_store_install(path, oribi_slice(text, (size_t)n), error);
}

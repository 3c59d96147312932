/* Files of init. A file is made under a name of its own first and takes its name then, so that a full disk leaves what
 * was there. Reading order: oribi__init_make, write_draft; oribi__init_append. */
#include "command/init_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_AT_A_TIME = 16 * 1024 };

void oribi__init_say(struct oribi__init *run, const char *what, const char *path)
{
    oribi_buf_print(run->out, "%12s  %s\n", what, path);
}

static int complain(struct oribi__init *run, const char *what, const char *path)
{
    (void)oribi_os_fail();
    (void)snprintf(run->error, ORIBI_ERROR_TEXT_CAP, "cannot %s %.100s: %s", what, path, oribi_os_error_text());
    return ORIBI_ESYS;
}

static int locate(struct oribi__init *run, const char *path, char dst[PATH_MAX])
{
    bool here = strcmp(run->folder, ".") == 0;
    int n = snprintf(dst, PATH_MAX, "%s%s%s", here ? "" : run->folder, here ? "" : "/", path);
    if (n < PATH_MAX)
        return 0;
    (void)snprintf(run->error, ORIBI_ERROR_TEXT_CAP, "the folder's name is too long: %.100s", run->folder);
    return ORIBI_ELIMIT;
}

bool oribi__init_has(const struct oribi__init *run, const char *path)
{
    char name[PATH_MAX];
    struct stat info;
    return locate((struct oribi__init *)run, path, name) == 0 && lstat(name, &info) == 0;
}

/* --- reading --- */

static int read_all(struct oribi__init *run, int fd, const char *path, struct oribi_buf *text)
{
    for (;;) {
        ssize_t n = oribi_os_read(fd, oribi_buf_reserve(text, READ_AT_A_TIME), READ_AT_A_TIME);
        if (n == 0)
            return 0;
        if (n < 0)
            return complain(run, "read", path);
        text->len += (size_t)n;
        if (text->len > ORIBI_INIT_FILE_MAX) {
            (void)snprintf(run->error, ORIBI_ERROR_TEXT_CAP, "%.100s is longer than %d bytes", path,
                           ORIBI_INIT_FILE_MAX);
            return ORIBI_ELIMIT;
        }
    }
}

int oribi__init_read(struct oribi__init *run, const char *path, struct oribi_buf *text)
{
    char name[PATH_MAX];
    struct stat info;
    int code = locate(run, path, name);
    if (code < 0)
        return code;
    int fd = oribi_os_lift(open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)); /* a FIFO does not hold us up */
    if (fd < 0)
        return errno == ENOENT ? ORIBI__INIT_NONE : complain(run, "read", path);
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        (void)snprintf(run->error, ORIBI_ERROR_TEXT_CAP, "%.100s is no regular file", path);
        code = ORIBI_EINVAL;
    } else {
        code = read_all(run, fd, path, text);
    }
    oribi_os_close(fd);
    return code;
}

/* --- writing --- */

static int write_all(struct oribi__init *run, int fd, const char *path, const struct oribi_buf *text)
{
    return oribi_os_write_all(fd, text->p, text->len) < 0 ? complain(run, "write", path) : 0;
}

static int write_draft(struct oribi__init *run, const char *draft, const char *path, const struct oribi_buf *text,
                       mode_t mode)
{
    int fd = oribi_os_lift(open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (fd < 0)
        return complain(run, "make", path);
    int code = write_all(run, fd, path, text);
    oribi_os_close(fd);
    if (code < 0)
        (void)unlink(draft);
    return code;
}

static int make_folder(struct oribi__init *run, const char *path)
{
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return 0;
    char folder[NAME_MAX];
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path); /* a short one of ours */
    int code = locate(run, folder, name);
    if (code < 0 || mkdir(name, 0777) == 0 || errno == EEXIST)
        return code;
    return complain(run, "make the folder", name);
}

static int same_name(struct oribi__init *run, const char *path, const char *suffix, char dst[PATH_MAX])
{
    char longer[NAME_MAX];
    (void)snprintf(longer, sizeof(longer), "%s%s", path, suffix); /* both are ours, and short */
    return locate(run, longer, dst);
}

static int publish(struct oribi__init *run, const char *path, const struct oribi_buf *text, mode_t mode, bool replaces)
{
    char name[PATH_MAX];
    char draft[PATH_MAX];
    char old[PATH_MAX];
    int code = make_folder(run, path);
    if (code == 0)
        code = locate(run, path, name);
    if (code == 0)
        code = same_name(run, path, ".new", draft);
    if (code == 0)
        code = same_name(run, path, ".old", old);
    if (code == 0)
        code = write_draft(run, draft, path, text, mode);
    if (code < 0)
        return code;
    if ((replaces && rename(name, old) < 0) || rename(draft, name) < 0) {
        code = complain(run, "make", path);
        (void)unlink(draft);
    }
    return code;
}

int oribi__init_make(struct oribi__init *run, const char *path, const struct oribi_buf *text, bool executable)
{
    struct oribi_buf there = {0};
    bool replaces = false;
    int code = oribi__init_has(run, path) ? oribi__init_read(run, path, &there) : ORIBI__INIT_NONE;
    if (code == ORIBI__INIT_NONE && oribi__init_has(run, path)) { /* a link that leads nowhere */
        (void)snprintf(run->error, ORIBI_ERROR_TEXT_CAP, "%.100s is a link to a file that is not there", path);
        code = ORIBI_EINVAL;
    } else if (code == 0) {
        bool same = there.len == text->len && memcmp(there.p, text->p, text->len) == 0;
        replaces = !same && run->force;
        oribi__init_say(run, same ? "identical" : replaces ? "replace" : "keep", path);
        if (!replaces) {
            oribi_buf_deinit(&there);
            return 0;
        }
    } else if (code == ORIBI__INIT_NONE) {
        oribi__init_say(run, "create", path);
        code = 0;
    }
    oribi_buf_deinit(&there);
    return code < 0 || run->pretend ? code : publish(run, path, text, executable ? 0777 : 0666, replaces);
}

int oribi__init_append(struct oribi__init *run, const char *path, const struct oribi_buf *text, const char *line)
{
    char name[PATH_MAX];
    const char *end = text->len > 0 ? memchr(text->p, '\n', text->len) : NULL;
    const char *newline = end && end > text->p && end[-1] == '\r' ? "\r\n" : "\n";
    struct oribi_buf added = {0};
    int code = locate(run, path, name);
    oribi__init_say(run, "append", path);
    if (code < 0 || run->pretend)
        return code;
    if (text->len > 0 && text->p[text->len - 1] != '\n')
        oribi_buf_append(&added, newline, strlen(newline));
    oribi_buf_append(&added, line, strlen(line));
    oribi_buf_append(&added, newline, strlen(newline));
    int fd = oribi_os_lift(open(name, O_WRONLY | O_APPEND | O_CLOEXEC));
    code = fd < 0 ? complain(run, "write", path) : write_all(run, fd, path, &added);
    if (fd >= 0)
        oribi_os_close(fd);
    oribi_buf_deinit(&added);
    return code;
}

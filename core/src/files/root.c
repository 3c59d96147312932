/* A root and the files in it.
 *
 *     path ─► one call, or steps ─► a file, a verdict
 *                    │ a link that leaves the root, or any link without openat2
 *                    ▼
 *                 resolve(): the path without links, as text: only a hint
 *                    │
 *                    ▼
 *                 the folder that it lies in ─► steps without links from there ─► a file, a verdict
 *
 * What resolve() finds may be old before it is used, so nothing is believed of it: the second opening begins at a
 * folder that is held open and meets real folders only, or does not come about, and then the path is resolved again. */
#include "oribi/files/root.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "files/os_beneath.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

enum {
    NOW_CAP = 2 * PATH_MAX,
    TODO_CAP =
        (1 + ORIBI_ROOT_LINKS_MAX) * PATH_MAX, /* a path, and the texts of all links that may be followed on it */
};

/* The root, or a folder that its links may lead to. */
struct folder {
    int fd;
    struct oribi_fd_mark mark;
    size_t real_n;
    char real[PATH_MAX];  /* its path without links; empty for "/" */
    char given[PATH_MAX]; /* the operator's, absolute */
};

/* A path on its way: what is resolved already, and what is still to go. */
struct resolving {
    uint32_t links;
    size_t n;
    char now[NOW_CAP]; /* absolute, without links; empty for "/" */
    char todo[TODO_CAP];
};

struct oribi_root {
    bool openat2;
    struct resolving *way; /* of the path that is opened at the moment; most of its memory is never touched */
    uint32_t generation;
    uint32_t folder_count; /* the root is the first */
    struct folder folders[];
};

/* --- resolving --- */

static bool lies_in(const struct folder *folder, const char *text)
{
    return strncmp(text, folder->real, folder->real_n) == 0 &&
           (text[folder->real_n] == '/' || text[folder->real_n] == '\0');
}

/* The first folder that `text` lies in, and the path from there; NULL when it lies outside of all. */
static const struct folder *folder_of(const struct oribi_root *root, const char *text, const char **rest)
{
    for (uint32_t i = 0; i < root->folder_count; i++) {
        const struct folder *folder = &root->folders[i];
        if (!lies_in(folder, text))
            continue;
        const char *slash = text + folder->real_n;
        *rest = slash[0] && slash[1] ? slash + 1 : ".";
        return folder;
    }
    return NULL;
}

/* Inside, a look starts at the open folder: this process may have lost the right to come to it from above. */
static int look(const struct oribi_root *root, const char *text, char *target, size_t cap)
{
    const char *rest;
    const struct folder *folder = folder_of(root, text, &rest);
    return folder ? oribi__beneath_look(folder->fd, rest, target, cap)
                  : oribi__beneath_look(-1, text[0] ? text : "/", target, cap);
}

static bool push(struct resolving *way, const char *name, size_t n)
{
    if (way->n + n + 2 > sizeof(way->now))
        return false;
    way->now[way->n++] = '/';
    memcpy(way->now + way->n, name, n);
    way->n += n;
    way->now[way->n] = '\0';
    return true;
}

/* "/" is its own parent. */
static void pop(struct resolving *way)
{
    while (way->n > 0 && way->now[way->n - 1] != '/')
        way->n--;
    if (way->n > 0)
        way->n--;
    way->now[way->n] = '\0';
}

/* `..` and `.` are names that are looked up: they ask for a folder, and for the right to go through it. */
static int step_dots(const struct oribi_root *root, struct resolving *way, size_t dots)
{
    char none[1];
    if (!push(way, ".", 1))
        return ORIBI_FILE_MISSING;
    int code = look(root, way->now, none, sizeof(none));
    pop(way);
    if (code != ORIBI_FILE_FOLDER)
        return code;
    if (dots == 2)
        pop(way);
    return ORIBI_FILE_OK;
}

/* The link's text takes the place of its name, before what follows. */
static int step_link(struct resolving *way, const char *target, const char *rest)
{
    size_t target_n = strlen(target);
    size_t rest_n = strlen(rest);
    if (++way->links > ORIBI_ROOT_LINKS_MAX)
        return ORIBI_FILE_LOOP;
    assert(target_n + rest_n < sizeof(way->todo));
    if (target[0] == '/')
        way->now[way->n = 0] = '\0';
    else
        pop(way);
    memmove(way->todo + target_n, rest, rest_n + 1);
    memcpy(way->todo, target, target_n);
    return ORIBI_FILE_OK;
}

/* One name of `todo` to `now`. *rest is what follows it, in todo. */
static int step_name(const struct oribi_root *root, struct resolving *way, const char *name, size_t n)
{
    char target[PATH_MAX];
    if (n <= 2 && memcmp(name, "..", n) == 0) {
        int code = step_dots(root, way, n);
        memmove(way->todo, name + n, strlen(name + n) + 1);
        return code;
    }
    if (!push(way, name, n))
        return ORIBI_FILE_MISSING;
    int code = look(root, way->now, target, sizeof(target));
    if (code == ORIBI__BENEATH_LINK)
        return step_link(way, target, name + n);
    bool is_kind = code == ORIBI_FILE_OK || (code >= ORIBI_FILE_FOLDER && code <= ORIBI_FILE_SOCKET);
    if (!is_kind)
        return code;
    if (code != ORIBI_FILE_FOLDER && name[n] != '\0') /* something is looked for in what is no folder */
        return ORIBI_FILE_MISSING;
    memmove(way->todo, name + n, strlen(name + n) + 1);
    return ORIBI_FILE_OK;
}

/* Follows `path` from the root to a path without links: OK whatever is there, or why nothing is. */
static int resolve(const struct oribi_root *root, const char *path)
{
    struct resolving *way = root->way;
    int code = ORIBI_FILE_OK;
    way->links = 0;
    way->n = path[0] == '/' ? 0 : root->folders[0].real_n;
    memcpy(way->now, root->folders[0].real, way->n);
    way->now[way->n] = '\0';
    memcpy(way->todo, path, strlen(path) + 1);
    while (code == ORIBI_FILE_OK) {
        const char *name = way->todo + strspn(way->todo, "/");
        if (!*name)
            break;
        code = step_name(root, way, name, strcspn(name, "/"));
    }
    return code;
}

/* --- opening --- */

/* One attempt: a verdict, or ORIBI__BENEATH_LINK when the path was changed in between. */
static int open_resolved(const struct oribi_root *root, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    const char *rest;
    int code = resolve(root, path);
    if (code != ORIBI_FILE_OK)
        return code == ORIBI_FILE_CHANGING ? ORIBI__BENEATH_LINK : code;
    const struct folder *folder = folder_of(root, root->way->now, &rest);
    if (!folder)
        return ORIBI_FILE_OUTSIDE;
    return oribi__beneath_open(folder->fd, rest, purpose, root->openat2, fd);
}

static int open_somehow(const struct oribi_root *root, const char *path, enum oribi__beneath_for purpose, int *fd)
{
    int home = root->folders[0].fd;
    int code = root->openat2 ? oribi__beneath_follow(home, path, purpose, fd) : ORIBI__BENEATH_ABSENT;
    if (code == ORIBI__BENEATH_ABSENT)
        code = oribi__beneath_open(home, path, purpose, false, fd);
    for (int attempt = 0; code == ORIBI__BENEATH_LINK; attempt++) {
        if (attempt == ORIBI_ROOT_ATTEMPTS_MAX)
            return ORIBI_FILE_CHANGING;
        code = open_resolved(root, path, purpose, fd);
    }
    return code;
}

/* Why a file cannot be read that is no regular one matters less than what it is. */
static enum oribi_file_verdict refused(const struct oribi_root *root, const char *path, int code)
{
    struct oribi_file_info info;
    int fd;
    if ((code != ORIBI_FILE_DENIED && code != ORIBI_FILE_DEVICE) ||
        open_somehow(root, path, ORIBI__FOR_LOOKING, &fd) != ORIBI_FILE_OK)
        return (enum oribi_file_verdict)code;
    enum oribi_file_verdict kind = oribi__beneath_kind(fd, &info);
    oribi_os_close(fd);
    return kind == ORIBI_FILE_OK ? ORIBI_FILE_DENIED : kind;
}

enum oribi_file_verdict oribi_root_open(struct oribi_root *root, const char *path, int *fd,
                                        struct oribi_file_info *info)
{
    int got;
    if (strnlen(path, ORIBI_PATH_BYTES_MAX + 1) > ORIBI_PATH_BYTES_MAX)
        return ORIBI_FILE_MISSING;
    int code = open_somehow(root, path[0] ? path : ".", ORIBI__FOR_READING, &got);
    if (code != ORIBI_FILE_OK)
        return refused(root, path[0] ? path : ".", code);
    enum oribi_file_verdict kind = oribi__beneath_kind(got, info);
    if (kind == ORIBI_FILE_OK && oribi_file_size_is_doubtful(got, info))
        kind = ORIBI_FILE_DEVICE; /* the system's, made while it is read: /proc, /sys */
    if (kind == ORIBI_FILE_OK)
        *fd = got;
    else
        oribi_os_close(got);
    return kind;
}

/* --- a root's life --- */

static int open_folder(struct folder *folder)
{
    int fd;
    char real[PATH_MAX];
    int code = oribi__beneath_folder(folder->given, &fd, real, sizeof(real));
    if (code < 0)
        return code;
    oribi_os_close(folder->fd);
    folder->fd = fd;
    oribi_os_mark(fd, &folder->mark);
    folder->real_n = strcmp(real, "/") == 0 ? 0 : strlen(real);
    memcpy(folder->real, real, folder->real_n);
    folder->real[folder->real_n] = '\0';
    return 0;
}

int oribi_root_create(struct oribi_root **root, const char *path, const char *const *folders, uint32_t folder_count,
                      int *bad)
{
    if (folder_count > ORIBI_ROOT_FOLDERS_MAX)
        return ORIBI_EINVAL;
    struct oribi_root *made = oribi_mem_alloc(1, sizeof(*made) + (folder_count + 1) * sizeof(made->folders[0]));
    made->folder_count = folder_count + 1;
    made->way = oribi_mem_alloc(1, sizeof(*made->way));
    for (uint32_t i = 0; i < made->folder_count; i++)
        made->folders[i].fd = -1;
    for (uint32_t i = 0; i < made->folder_count; i++) {
        struct folder *folder = &made->folders[i];
        int code = oribi_os_absolute_path(i ? folders[i - 1] : path, folder->given, sizeof(folder->given));
        if (code == 0)
            code = open_folder(folder);
        if (code == 0)
            continue;
        if (bad)
            *bad = (int)i - 1;
        oribi_root_destroy(made);
        return code;
    }
    made->openat2 = oribi__beneath_has_openat2(made->folders[0].fd);
    *root = made;
    return 0;
}

void oribi_root_destroy(struct oribi_root *root)
{
    if (!root)
        return;
    for (uint32_t i = 0; i < root->folder_count; i++)
        oribi_os_close(root->folders[i].fd);
    oribi_mem_free(root->way);
    oribi_mem_free(root);
}

void oribi_root_abandon(struct oribi_root *root)
{
    for (uint32_t i = 0; i < root->folder_count; i++)
        if (oribi_os_is_marked(root->folders[i].fd, &root->folders[i].mark))
            oribi_os_close(root->folders[i].fd);
}

/* 1 when it is another folder now. An inode's number cannot be given to a new folder while we hold the old one open. */
static int refresh_folder(struct folder *folder)
{
    struct oribi_fd_mark mark;
    int code = oribi__beneath_folder_mark(folder->given, &mark);
    if (!oribi_os_is_marked(folder->fd, &folder->mark))
        folder->fd = -1; /* closed by the application, and perhaps something else of its own by now */
    if (code < 0)
        return code;
    if (folder->fd >= 0 && mark.device == folder->mark.device && mark.inode == folder->mark.inode)
        return 0;
    code = open_folder(folder);
    return code < 0 ? code : 1;
}

int oribi_root_refresh(struct oribi_root *root)
{
    int result = 0;
    bool changed = false;
    for (uint32_t i = 0; i < root->folder_count; i++) {
        int code = refresh_folder(&root->folders[i]);
        changed = changed || code > 0;
        if (code < 0)
            result = code;
    }
    if (changed)
        root->generation++;
    return result < 0 ? result : changed;
}

uint32_t oribi_root_generation(const struct oribi_root *root)
{
    return root->generation;
}

bool oribi_file_info_equal(const struct oribi_file_info *a, const struct oribi_file_info *b)
{
    return a->inode == b->inode && a->device == b->device && a->size == b->size && a->mtime_s == b->mtime_s &&
           a->mtime_ns == b->mtime_ns && a->ctime_s == b->ctime_s && a->ctime_ns == b->ctime_ns;
}

const char *oribi_file_verdict_text(enum oribi_file_verdict verdict)
{
    static const char *const texts[] = {
        [ORIBI_FILE_OK] = "a file",
        [ORIBI_FILE_MISSING] = "no such file",
        [ORIBI_FILE_FOLDER] = "a folder",
        [ORIBI_FILE_DEVICE] = "a device",
        [ORIBI_FILE_FIFO] = "a fifo",
        [ORIBI_FILE_SOCKET] = "a socket",
        [ORIBI_FILE_OUTSIDE] = "a link that leads outside",
        [ORIBI_FILE_LOOP] = "too many links",
        [ORIBI_FILE_DENIED] = "permission denied",
        [ORIBI_FILE_CHANGING] = "path changed while it was resolved",
        [ORIBI_FILE_LIMIT] = "out of descriptors or memory",
        [ORIBI_FILE_FAILED] = "system call failed",
    };
    return texts[verdict];
}

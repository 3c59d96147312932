/* Paths, roots, mounts and fixed answers. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_fixed
/* Lines of fixed answers and a request for one: lines one by one, separated by NUL bytes, the last is a target. What is
 * read keeps the rules of its header, and a Location stays on the server that its line names. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/files/fixed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 8 };

static void check_location(const struct oribi_fixed *fixed, struct oribi_slice path, struct oribi_slice query)
{
    static char location[ORIBI_FIXED_LOCATION_MAX];
    ssize_t n = oribi_fixed_location(fixed, path, query, location, sizeof(location));
    if (n == ORIBI_ELIMIT)
        return;
    assert(n > 0 && (size_t)n >= fixed->text.n && memcmp(location, fixed->text.p, fixed->text.n) == 0);
    assert(location[0] == 'h' || (location[0] == '/' && (n < 2 || (location[1] != '/' && location[1] != '\\'))));
}

static void ask(const struct oribi_fixed_set *set, const char *target)
{
    static struct oribi_path path;
    size_t n = strcspn(target, "?");
    if (oribi_path_read(oribi_slice(target, n), &path) != ORIBI_PATH_OK)
        return;
    const struct oribi_fixed *fixed = oribi_fixed_find(set, &path);
    if (!fixed)
        return;
    assert(path.n >= fixed->path.n && memcmp(path.text, fixed->path.p, fixed->path.n) == 0);
    assert(fixed->has_star ? fixed->path.p[fixed->path.n - 1] == '/' : path.n == fixed->path.n);
    if (fixed->kind == ORIBI_FIXED_REDIRECT) {
        const char *query = target + n + (target[n] == '?');
        check_location(fixed, oribi_slice(target, n), oribi_slice(query, strlen(query)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *answers[LINES_MAX];
    char *redirects[LINES_MAX];
    struct oribi_fixed_lines lines = {answers, redirects, NULL, 0, 0};
    struct oribi_fixed_set *set = NULL;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    char *p = text;
    for (char *end; (end = memchr(p, '\0', size - (size_t)(p - text))) != NULL; p = end + 1) {
        if (*p == 'a' && lines.answer_count < LINES_MAX)
            answers[lines.answer_count++] = p + 1;
        else if (*p == 'r' && lines.redirect_count < LINES_MAX)
            redirects[lines.redirect_count++] = p + 1;
        else if (*p == 'h')
            lines.health = p + 1;
    }
    int code = oribi_fixed_set_create(&lines, &set, error);
    assert(code == 0 ? true : code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !set);
    if (set)
        ask(set, p);
    oribi_fixed_set_destroy(set);
    free(text);
    return 0;
}
#endif

#ifdef FUZZ_mount
/* Lines of mounts, whatever they hold: what is read keeps the rules of its header. */
#include "oribi/base/error.h"
#include "oribi/files/mount.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool is_in_room(const struct oribi_mount *mount, const char *text)
{
    return text >= mount->room && text < mount->room + sizeof(mount->room) &&
           memchr(text, '\0', (size_t)(mount->room + sizeof(mount->room) - text));
}

static void check(const struct oribi_mount *mount)
{
    assert(is_in_room(mount, mount->prefix) && is_in_room(mount, mount->folder) && mount->folder[0]);
    assert(strlen(mount->prefix) <= ORIBI_MOUNT_PREFIX_MAX && strlen(mount->folder) < PATH_MAX);
    assert(!mount->prefix[0] || (mount->prefix[0] == '/' && mount->prefix[strlen(mount->prefix) - 1] != '/'));
    assert(!mount->index || (is_in_room(mount, mount->index) && !strchr(mount->index, '/')));
    assert(mount->link_count <= ORIBI_MOUNT_LINKS_MAX && mount->header_count <= ORIBI_MOUNT_HEADERS_MAX);
    for (uint32_t i = 0; i < mount->link_count; i++)
        assert(is_in_room(mount, mount->links[i]) && mount->links[i][0]);
    for (uint32_t i = 0; i < mount->header_count; i++) {
        assert(mount->headers[i].name[0] && !strpbrk(mount->headers[i].name, ": \t\r\n"));
        assert(!strpbrk(mount->headers[i].value, "\r\n") && strlen(mount->headers[i].value) <= ORIBI_MOUNT_VALUE_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_mount mount;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = oribi_mount_read(text, &mount, error);
    if (code == 0)
        check(&mount);
    else
        assert(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error));
    free(text);
    return 0;
}
#endif

#ifdef FUZZ_path
/* The path of a request and the mount that it belongs to. First byte: how many of the prefixes below are mounted; the
 * rest is the raw path.
 *
 * Holds for every input: the verdict and the path are those of a reader that looks at one thing at a time; a path that
 * was read leads out of no folder, and read again it is itself; each mount comes once, in order. */
#include "ours.h"

#include "oribi/base/error.h"
#include "oribi/files/root.h"

#include <ctype.h>

static const char *const prefix_texts[] = {"", "/a", "/a/b", "/a", "/.well-known", "/a b", "/abc", "/b/a/c"};
enum { PREFIXES = sizeof(prefix_texts) / sizeof(prefix_texts[0]) };

static int digit(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

static bool is_bad_escape(const uint8_t *p, size_t n)
{
    return p[0] == '%' && (n < 3 || digit(p[1]) < 0 || digit(p[2]) < 0);
}

/* The verdict on the bytes alone; *n bytes decoded into dst, which has room for all. */
static enum oribi_path_verdict decode_slowly(const uint8_t *p, size_t left, char *dst, size_t *n)
{
    while (left > 0) {
        if (is_bad_escape(p, left))
            return ORIBI_PATH_ESCAPE;
        size_t step = *p == '%' ? 3 : 1;
        int value = *p == '%' ? digit(p[1]) * 16 + digit(p[2]) : *p;
        if (value == '/' && step == 3)
            return ORIBI_PATH_ENCODED_SLASH;
        if (value == 0)
            return ORIBI_PATH_NUL;
        if (*n >= 4095)
            return ORIBI_PATH_TOO_LONG;
        dst[(*n)++] = (char)value;
        p += step;
        left -= step;
    }
    return ORIBI_PATH_OK;
}

static enum oribi_path_verdict check_slowly(const char *path)
{
    for (const char *p = path; *p; p++) {
        const char *name = p + 1;
        if (*p != '/' || !*name)
            continue;
        size_t n = strcspn(name, "/");
        if (n == 0)
            return ORIBI_PATH_EMPTY_SEGMENT;
        if ((n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
            return ORIBI_PATH_DOT_SEGMENT;
        if (name[0] == '.' && !(p == path && n == 11 && memcmp(name, ".well-known", 11) == 0))
            return ORIBI_PATH_HIDDEN;
    }
    return ORIBI_PATH_OK;
}

static bool belongs(const char *prefix, const char *path)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static void check_mounts(const struct oribi_path *path, uint32_t count)
{
    struct oribi_slice prefixes[PREFIXES];
    uint32_t want = 0;
    uint32_t got = 0;
    for (uint32_t i = 0; i < count; i++) {
        prefixes[i] = oribi_slice(prefix_texts[i], strlen(prefix_texts[i]));
        want += belongs(prefix_texts[i], path->text);
    }
    ssize_t last = -1;
    for (ssize_t at; (at = oribi_mount_find(prefixes, count, path, last)) >= 0; last = at) {
        const char *rest = oribi_mount_rest(prefixes[at], path);
        got++;
        expect(got <= want && belongs(prefix_texts[at], path->text));
        expect(last < 0 || prefixes[last].n > prefixes[at].n || (prefixes[last].n == prefixes[at].n && last < at));
        expect(rest[0] != '/' && strlen(rest) <= path->n - prefixes[at].n);
        expect(strcmp(path->text + path->n - strlen(rest), rest) == 0);
    }
    expect(got == want);
}

/* Written with every byte escaped but the slashes, it is the same path. */
static void read_again(const struct oribi_path *path)
{
    static struct oribi_path again;
    static char raw[3 * sizeof(path->text)];
    size_t n = 0;
    for (uint32_t i = 0; i < path->n; i++)
        n += (size_t)snprintf(raw + n, sizeof(raw) - n, path->text[i] == '/' ? "/" : "%%%02X", (uint8_t)path->text[i]);
    expect(oribi_path_read(oribi_slice(raw, n), &again) == ORIBI_PATH_OK);
    expect(again.n == path->n && memcmp(again.text, path->text, path->n + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_path path;
    static char want_text[4096];
    struct bytes in = {data, size};
    uint32_t count = next_byte(&in) % (PREFIXES + 1);
    char *raw = malloc(in.n ? in.n : 1); /* as long as it is, so that AddressSanitizer sees a byte too many */
    size_t n = 0;
    memcpy(raw, in.p ? in.p : (const uint8_t *)"", in.n);
    enum oribi_path_verdict want = ORIBI_PATH_NOT_ROOTED;
    if (in.n > 0 && in.p[0] == '/')
        want = decode_slowly(in.p, in.n, want_text, &n);
    want_text[n] = '\0';
    if (want == ORIBI_PATH_OK)
        want = check_slowly(want_text);
    expect(oribi_path_read(oribi_slice(raw, in.n), &path) == want);
    free(raw);
    if (want != ORIBI_PATH_OK)
        return 0;
    expect(path.n == n && memcmp(path.text, want_text, n + 1) == 0);
    expect(!strstr(path.text, "//") && !strstr(path.text, "/../"));
    read_again(&path);
    check_mounts(&path, count);
    return 0;
}
#endif

#ifdef FUZZ_root
/* A tree of files as the input says, and paths into it. Each line makes one thing: its first byte says which, and how
 * many bytes of the line name it; see make_one() and read_text(). Behind an empty line come paths, one a line.
 *
 *     tree/site   the root        tree/more   where its links may lead besides        tree/out   where they may not
 *
 * Holds for every tree and path: opened in one call or step by step, a file is the one that realpath(3) and stat(2)
 * name, and is opened only if realpath(3) says that it lies in the root or in the folder beside it; else the verdict is
 * the one that they give. No descriptor is left open. */
#include "ours.h"

#include "files/root.c"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>

enum { TEXT_MAX = 120, THINGS_MAX = 24, PATHS_MAX = 16 };

static char tree[PATH_MAX];
static char site[PATH_MAX + 8];
static char more[PATH_MAX + 8];

static int remove_one(const char *path, const struct stat *file, int type, struct FTW *where)
{
    return strcmp(path, tree) == 0 ? 0 : remove(path);
}

static void remove_tree(void)
{
    expect(nftw(tree, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static void remove_all(void)
{
    remove_tree();
    (void)rmdir(tree);
}

static void start(void)
{
    char dir[64] = "/dev/shm/oribi-root-fuzz-XXXXXX";
    if (access("/dev/shm", W_OK) < 0)
        memcpy(dir, "/tmp/oribi-root-fuzz-XXXXXX", sizeof("/tmp/oribi-root-fuzz-XXXXXX"));
    expect(mkdtemp(dir) && realpath(dir, tree));
    (void)snprintf(site, sizeof(site), "%s/site", tree);
    (void)snprintf(more, sizeof(more), "%s/more", tree);
    expect(atexit(remove_all) == 0);
}

/* One line of the input; false at the end, or at an empty line. */
static bool next_line(struct bytes *in, struct bytes *line)
{
    const uint8_t *end = in->n ? memchr(in->p, '\n', in->n) : NULL;
    *line = next_bytes(in, end ? (size_t)(end - in->p) : in->n);
    (void)next_byte(in);
    return line->n > 0;
}

/* A path: one byte is a name of few, a dot, two dots, a slash, the tree's own path, or the byte itself. */
static void read_text(struct bytes *in, char dst[PATH_MAX])
{
    size_t n = 0;
    dst[0] = '\0';
    for (int i = 0; i < TEXT_MAX && in->n > 0; i++) {
        static const char *const parts[] = {"a",   "b",  "c",  "/",  "/",     "..",    ".",
                                            "../", "a/", "b/", "//", "site/", "more/", "out/"};
        char own[2] = {0};
        uint8_t byte = next_byte(in);
        const char *part = own;
        if (byte >= 0x80 && byte < 0x80 + sizeof(parts) / sizeof(parts[0]))
            part = parts[byte - 0x80];
        else if (byte == 'T')
            part = n == 0 ? tree : "/";
        else if (byte == 'L')
            part = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
        else
            own[0] = byte ? (char)byte : 'a';
        if (n + strlen(part) >= PATH_MAX - 1)
            break;
        n += (size_t)snprintf(dst + n, PATH_MAX - n, "%s", part);
    }
}

/* Somewhere in the tree, never beside it: no input makes files elsewhere. */
static bool place_of(const char *text, char dst[2 * PATH_MAX])
{
    size_t n = (size_t)snprintf(dst, 2 * PATH_MAX, "%s/", tree);
    if (strstr(text, ".."))
        return false;
    if (strncmp(text, tree, strlen(tree)) == 0)
        text += strlen(tree);
    (void)snprintf(dst + n, 2 * PATH_MAX - n, "%s", text);
    return true;
}

/* Links on the way to a new name could lead anywhere, so a place counts only if its folder is really in the tree. */
static bool is_in_tree(const char *place)
{
    char folder[2 * PATH_MAX];
    char real[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", place);
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        folder[--n] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return realpath(folder, real) && strncmp(real, tree, strlen(tree)) == 0 &&
           (real[strlen(tree)] == '/' || !real[strlen(tree)]);
}

/* An entry that cannot be made is missing: that is a tree too. */
static void make_one(struct bytes *line, uint32_t number)
{
    char text[PATH_MAX];
    char target[PATH_MAX];
    char place[2 * PATH_MAX];
    uint8_t kind = next_byte(line);
    size_t split = kind >> 4;
    struct bytes first = next_bytes(line, split ? split : 1);
    read_text(&first, text);
    read_text(line, target);
    if (!place_of(text, place) || !is_in_tree(place))
        return;
    switch (kind % 8) {
    case 0:
    case 1:
        (void)!mkdir(place, 0755);
        break;
    case 2:
        (void)!mkfifo(place, 0644);
        break;
    case 3:
    case 4: {
        int fd = open(place, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0)
            expect(write(fd, &number, sizeof(number)) == sizeof(number) && close(fd) == 0);
        break;
    }
    default:
        (void)!symlink(target, place);
    }
}

static void make_tree(struct bytes *in)
{
    struct bytes line;
    char out[PATH_MAX + 8];
    (void)snprintf(out, sizeof(out), "%s/out", tree);
    expect(mkdir(site, 0755) == 0 && mkdir(more, 0755) == 0 && mkdir(out, 0755) == 0);
    for (uint32_t i = 0; i < THINGS_MAX && next_line(in, &line); i++)
        make_one(&line, i);
}

static bool is_below(const char *folder, const char *path)
{
    size_t n = strlen(folder);
    return strncmp(folder, path, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The verdict of the system's own resolver. realpath(3) itself forgives a slash behind a file, stat(2) does not. */
static enum oribi_file_verdict ask_system(const char *path, struct stat *file)
{
    char whole[2 * PATH_MAX + 16];
    char real[PATH_MAX];
    (void)snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : site, path[0] == '/' ? "" : "/", path);
    if (stat(whole, file) < 0 || !realpath(whole, real))
        return errno == ELOOP ? ORIBI_FILE_LOOP : ORIBI_FILE_MISSING;
    if (!is_below(site, real) && !is_below(more, real))
        return ORIBI_FILE_OUTSIDE;
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

static void check_path(struct oribi_root *root, const char *path)
{
    struct stat file;
    enum oribi_file_verdict want = ask_system(path, &file);
    bool has_openat2 = root->openat2;
    for (int openat2 = 0; openat2 <= has_openat2; openat2++) {
        struct oribi_file_info info;
        int fd = -1;
        root->openat2 = openat2 != 0;
        enum oribi_file_verdict got = oribi_root_open(root, path, &fd, &info);
        if (got != want)
            (void)fprintf(stderr, "%s, openat2 %d: %s, but the system: %s\n", path, openat2,
                          oribi_file_verdict_text(got), oribi_file_verdict_text(want));
        expect(got == want);
        if (got != ORIBI_FILE_OK)
            continue;
        expect(info.inode == (uint64_t)file.st_ino && info.device == (uint64_t)file.st_dev &&
               info.size == file.st_size);
        expect(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
        expect(close(fd) == 0);
    }
    root->openat2 = has_openat2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    struct bytes line;
    char path[PATH_MAX];
    struct oribi_root *root;
    const char *folders[] = {more};
    if (!tree[0])
        start();
    int before = lowest_free_fd();
    make_tree(&in);
    expect(oribi_root_create(&root, site, folders, 1, NULL) == 0);
    for (int i = 0; i < PATHS_MAX && next_line(&in, &line); i++) {
        read_text(&line, path);
        check_path(root, path);
    }
    check_path(root, "a");
    check_path(root, "a/b");
    check_path(root, "b/a");
    oribi_root_destroy(root);
    expect(lowest_free_fd() == before);
    remove_tree();
    return 0;
}
#endif

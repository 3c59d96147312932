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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

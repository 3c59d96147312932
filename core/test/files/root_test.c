/* Roots: what is opened beneath them and what is not, every case with openat2(2) and without it, and a root that is
 * changed while it is read. */
#include "files/root.c"

#include "child.h"
#include "system.h"
#include "tap.h"
#include "tree.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>

enum { NOBODY = 65534 };

static struct oribi_root *root_of(const char *name, const char *const *folders, uint32_t count)
{
    struct oribi_root *root = NULL;
    int bad = -2;
    ok_eq(oribi_root_create(&root, at(name), folders, count, &bad), 0);
    return root;
}

/* The verdict in one way of opening; the file's text in `text` when it is one. */
static enum oribi_file_verdict open_in(struct oribi_root *root, bool openat2, const char *path, char text[64])
{
    struct oribi_file_info info = {0};
    int fd = -1;
    int before = open_descriptors();
    bool kept = root->openat2;
    root->openat2 = openat2 && kept;
    enum oribi_file_verdict verdict = oribi_root_open(root, path, &fd, &info);
    root->openat2 = kept;
    text[0] = '\0';
    if (verdict == ORIBI_FILE_OK) {
        ssize_t n = read(fd, text, 63);
        text[n > 0 ? n : 0] = '\0';
        ok_named(fd > 2 && fcntl(fd, F_GETFD) == FD_CLOEXEC && info.size == n && info.inode != 0,
                 "%s: a descriptor as promised", path);
        close(fd);
    }
    ok_named(open_descriptors() == before && (verdict == ORIBI_FILE_OK || fd == -1), "%s: nothing is left open", path);
    return verdict;
}

static void both_ways(struct oribi_root *root, const char *path, enum oribi_file_verdict want, const char *want_text)
{
    for (int openat2 = 1; openat2 >= 0; openat2--) {
        char text[64];
        enum oribi_file_verdict got = open_in(root, openat2 != 0, path, text);
        ok_named(got == want, "%s %s: %s; wanted: %s", openat2 ? "one call" : "steps", path,
                 oribi_file_verdict_text(got), oribi_file_verdict_text(want));
        if (want_text)
            is_str(text, want_text);
    }
}

static void opens(struct oribi_root *root, const char *path, const char *text)
{
    both_ways(root, path, ORIBI_FILE_OK, text);
}

static void refuses(struct oribi_root *root, const char *path, enum oribi_file_verdict want)
{
    both_ways(root, path, want, NULL);
}

/* Everything beneath "site", with something beside it. */
static void make_site(void)
{
    tree_begin();
    make_folder("site");
    make_folder("site/a");
    make_folder("site/a/b");
    make_folder("outside");
    make_folder("siteX");
    make_file("site/top", "top");
    make_file("site/a/b/deep", "deep");
    make_file("site/a/side", "side");
    make_file("outside/secret", "secret");
    make_file("siteX/near", "near");
}

/* --- plain files --- */

static void test_plain_files_and_folders(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    ok_eq(root->openat2, oribi_os_adopts_orphans()); /* else half of this file is idle: Linux has it since 5.6 */
    opens(root, "top", "top");
    opens(root, "a/b/deep", "deep");
    make_file("site/empty", "");
    opens(root, "empty", "");
    refuses(root, "", ORIBI_FILE_FOLDER);
    refuses(root, "a", ORIBI_FILE_FOLDER);
    refuses(root, "a/", ORIBI_FILE_FOLDER);
    refuses(root, "a/b/", ORIBI_FILE_FOLDER);
    refuses(root, "none", ORIBI_FILE_MISSING);
    refuses(root, "a/none/x", ORIBI_FILE_MISSING);
    refuses(root, "top/x", ORIBI_FILE_MISSING);
    refuses(root, "top/", ORIBI_FILE_MISSING);
    oribi_root_destroy(root);
    tree_end();
}

static void test_special_files(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    must(mkfifo(at("site/fifo"), 0644) == 0);
    refuses(root, "fifo", ORIBI_FILE_FIFO); /* and did not wait */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", at("site/socket"));
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    refuses(root, "socket", oribi_os_adopts_orphans() ? ORIBI_FILE_SOCKET : ORIBI_FILE_DEVICE); /* it is not opened */
    close(fd);
    make_link("fifo", "site/to-fifo");
    refuses(root, "to-fifo", ORIBI_FILE_FIFO);
    if (mknod(at("site/null"), S_IFCHR | 0666, makedev(1, 3)) == 0)
        refuses(root, "null", ORIBI_FILE_DEVICE);
    else
        tap_skip(1, "making a device needs root");
    if (mknod(at("site/no-driver"), S_IFCHR | 0666, makedev(511, 511)) == 0)
        refuses(root, "no-driver", ORIBI_FILE_DEVICE);
    else
        tap_skip(1, "making a device needs root");
    oribi_root_destroy(root);
    tree_end();
}

static void test_names_and_paths_that_are_too_long(void)
{
    static char path[ORIBI_PATH_BYTES_MAX + 2];
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    memset(path, 'n', NAME_MAX);
    make_file("site/x", "x");
    must(rename(at("site/x"), at((snprintf(path + 300, 600, "site/%.255s", path), path + 300))) == 0);
    path[NAME_MAX] = '\0';
    opens(root, path, "x");
    path[NAME_MAX] = 'n';
    path[NAME_MAX + 1] = '\0';
    refuses(root, path, ORIBI_FILE_MISSING);
    for (size_t i = 0; i < sizeof(path); i++)
        path[i] = i % 2 ? '/' : 'q';
    path[ORIBI_PATH_BYTES_MAX] = '\0';
    refuses(root, path, ORIBI_FILE_MISSING);
    path[ORIBI_PATH_BYTES_MAX] = '/';
    path[ORIBI_PATH_BYTES_MAX + 1] = '\0';
    refuses(root, path, ORIBI_FILE_MISSING);
    oribi_root_destroy(root);
    tree_end();
}

static void test_paths_that_nobody_checked_stay_inside(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    refuses(root, "../outside/secret", ORIBI_FILE_OUTSIDE);
    refuses(root, "a/../../outside/secret", ORIBI_FILE_OUTSIDE);
    refuses(root, "..", ORIBI_FILE_OUTSIDE);
    refuses(root, "/etc/passwd", ORIBI_FILE_OUTSIDE);
    refuses(root, "../siteX/near", ORIBI_FILE_OUTSIDE);
    refuses(root, "../../../../../../../../../etc/passwd", ORIBI_FILE_OUTSIDE);
    opens(root, "a/../top", "top");
    opens(root, "./a//b/./deep", "deep");
    opens(root, "../site/top", "top");
    opens(root, at("site/top"), "top");
    refuses(root, "top/../top", ORIBI_FILE_MISSING);
    refuses(root, "top/.", ORIBI_FILE_MISSING);
    refuses(root, ".", ORIBI_FILE_FOLDER);
    oribi_root_destroy(root);
    tree_end();
}

/* --- links --- */

static void test_links_that_stay_inside(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    make_link("a/side", "site/relative");
    make_link("../top", "site/a/up");
    make_link(at("site/top"), "site/absolute");
    make_link("a", "site/folder");
    make_link(at("site/a/b"), "site/a/absolute-folder");
    make_link("relative", "site/chain");
    make_link("../site/top", "site/out-and-in");
    make_link("folder/", "site/slash");
    make_link("./a/./b//deep", "site/untidy");
    opens(root, "relative", "side");
    opens(root, "a/up", "top");
    opens(root, "absolute", "top");
    opens(root, "folder/side", "side");
    opens(root, "folder/up", "top");
    opens(root, "a/absolute-folder/deep", "deep");
    opens(root, "folder/absolute-folder/../side", "side");
    opens(root, "chain", "side");
    opens(root, "out-and-in", "top");
    opens(root, "slash/side", "side");
    opens(root, "untidy", "deep");
    refuses(root, "folder", ORIBI_FILE_FOLDER);
    refuses(root, "folder/", ORIBI_FILE_FOLDER);
    refuses(root, "a/absolute-folder", ORIBI_FILE_FOLDER);
    refuses(root, "relative/", ORIBI_FILE_MISSING);
    refuses(root, "absolute/", ORIBI_FILE_MISSING);
    refuses(root, "relative/x", ORIBI_FILE_MISSING);
    oribi_root_destroy(root);
    tree_end();
}

static void test_links_that_lead_out(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    make_link("../outside/secret", "site/relative");
    make_link(at("outside/secret"), "site/absolute");
    make_link("../outside", "site/folder");
    make_link("../siteX/near", "site/near"); /* the root's path is only the beginning of that name */
    make_link("/", "site/slash");
    make_link("relative", "site/chain");
    make_link(at("site/top"), "outside/back");
    make_link("../outside/back", "site/boomerang");
    refuses(root, "relative", ORIBI_FILE_OUTSIDE);
    refuses(root, "absolute", ORIBI_FILE_OUTSIDE);
    refuses(root, "folder", ORIBI_FILE_OUTSIDE);
    refuses(root, "folder/secret", ORIBI_FILE_OUTSIDE);
    refuses(root, "near", ORIBI_FILE_OUTSIDE);
    refuses(root, "slash", ORIBI_FILE_OUTSIDE);
    refuses(root, "slash/etc/passwd", ORIBI_FILE_OUTSIDE);
    refuses(root, "chain", ORIBI_FILE_OUTSIDE);
    opens(root, "boomerang", "top"); /* it ends inside, wherever it went */
    oribi_root_destroy(root);
    tree_end();
}

static void test_links_that_end_nowhere(void)
{
    char name[32];
    char text[32];
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    make_link("nowhere", "site/dangling");
    make_link("/nowhere/at/all", "site/far");
    make_link("itself", "site/itself");
    make_link("pong", "site/ping");
    make_link("ping", "site/pong");
    make_link(at("site/absolute"), "site/absolute");
    refuses(root, "dangling", ORIBI_FILE_MISSING);
    refuses(root, "far", ORIBI_FILE_MISSING);
    refuses(root, "itself", ORIBI_FILE_LOOP);
    refuses(root, "ping", ORIBI_FILE_LOOP);
    refuses(root, "absolute", ORIBI_FILE_LOOP);
    refuses(root, "itself/x", ORIBI_FILE_LOOP);
    make_link("top", "site/link1");
    for (int i = 2; i <= ORIBI_ROOT_LINKS_MAX + 1; i++) {
        (void)snprintf(text, sizeof(text), "link%d", i - 1);
        (void)snprintf(name, sizeof(name), "site/link%d", i);
        make_link(text, name);
    }
    opens(root, "link40", "top");
    refuses(root, "link41", ORIBI_FILE_LOOP);
    char long_text[PATH_MAX] = "grows/";
    memset(long_text + 6, '/', PATH_MAX - 8);
    long_text[PATH_MAX - 2] = 'x';
    make_link(long_text, "site/grows"); /* every time around there is more to go */
    refuses(root, "grows", ORIBI_FILE_LOOP);
    oribi_root_destroy(root);
    tree_end();
}

static void test_folders_that_links_may_lead_to(void)
{
    make_site();
    make_folder("shared");
    make_folder("shared/system");
    make_file("shared/system/logo", "logo");
    make_link(at("shared/system"), "site/system");
    make_link("../shared/system/logo", "site/logo");
    make_link(at("outside/secret"), "shared/leak");
    make_link("../shared/leak", "site/leak");
    make_link(at("site/top"), "shared/system/home");
    const char *shared[] = {at("shared")};
    struct oribi_root *root = root_of("site", shared, 1);
    struct oribi_root *strict = root_of("site", NULL, 0);
    opens(root, "system/logo", "logo");
    opens(root, "logo", "logo");
    opens(root, "system/home", "top");
    refuses(root, "leak", ORIBI_FILE_OUTSIDE);
    refuses(root, "system", ORIBI_FILE_FOLDER);
    refuses(strict, "system/logo", ORIBI_FILE_OUTSIDE);
    oribi_root_destroy(root);
    oribi_root_destroy(strict);
    tree_end();
}

/* Links of /proc lead to open files, wherever they are. */
static void test_magic_links_are_read_as_text(void)
{
    struct oribi_root *root = NULL;
    char text[64];
    ok_eq(oribi_root_create(&root, "/proc/self", NULL, 0, NULL), 0);
    make_site();
    int fd = open(at("outside/secret"), O_RDONLY | O_CLOEXEC);
    (void)snprintf(text, sizeof(text), "fd/%d", fd);
    refuses(root, text, ORIBI_FILE_OUTSIDE);
    refuses(root, "root/etc/passwd", ORIBI_FILE_OUTSIDE);
    close(fd);
    oribi_root_destroy(root);
    tree_end();
}

/* Files of /proc have another size than the bytes that reading them gives. */
static void test_files_that_are_made_while_they_are_read(void)
{
    struct oribi_root *root = NULL;
    int fd;
    struct oribi_file_info info;
    ok_eq(oribi_root_create(&root, "/proc/self", NULL, 0, NULL), 0);
    refuses(root, "stat", ORIBI_FILE_DEVICE);
    oribi_root_destroy(root);
    make_site();
    make_file("site/empty", "");
    root = root_of("site", NULL, 0);
    ok_eq(oribi_root_open(root, "empty", &fd, &info), ORIBI_FILE_OK);
    close(fd);
    oribi_root_destroy(root);
    tree_end();
}

static void test_a_root_behind_links(void)
{
    make_site();
    make_link("site", "current");
    make_link(at("current/top"), "site/through-current");
    struct oribi_root *root = root_of("current", NULL, 0);
    opens(root, "top", "top");
    opens(root, "through-current", "top");
    oribi_root_destroy(root);
    tree_end();
}

static void test_the_whole_system_as_root(void)
{
    struct oribi_root *root = NULL;
    make_site();
    make_link(at("site/top"), "outside/link");
    ok_eq(oribi_root_create(&root, "/", NULL, 0, NULL), 0);
    opens(root, at("site/top") + 1, "top");
    opens(root, at("outside/link") + 1, "top");
    refuses(root, "../..", ORIBI_FILE_FOLDER);
    oribi_root_destroy(root);
    tree_end();
}

/* --- rights --- */

/* In a child, whose lines would be counted with ours: says only what is wrong. */
static bool is_so(struct oribi_root *root, const char *path, enum oribi_file_verdict want)
{
    struct oribi_file_info info;
    bool so = true;
    for (int openat2 = 1; openat2 >= 0; openat2--) {
        int fd = -1;
        root->openat2 = openat2 != 0;
        enum oribi_file_verdict got = oribi_root_open(root, path, &fd, &info);
        if (got != want)
            diag("%s, openat2 %d: %s", path, openat2, oribi_file_verdict_text(got));
        so = so && got == want;
    }
    return so;
}

static int without_rights(void *data)
{
    struct oribi_root *root = data;
    if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
        return 2;
    bool so = is_so(root, "closed-file", ORIBI_FILE_DENIED);
    so = is_so(root, "closed/x", ORIBI_FILE_DENIED) && so;
    so = is_so(root, "link-closed/x", ORIBI_FILE_DENIED) && so;
    so = is_so(root, "closed/../top", ORIBI_FILE_DENIED) && so;
    so = is_so(root, "closed", ORIBI_FILE_FOLDER) && so;
    so = is_so(root, "closed-fifo", ORIBI_FILE_FIFO) && so;
    so = is_so(root, "pass/x", ORIBI_FILE_OK) && so; /* a folder that may be passed through and not be listed */
    so = is_so(root, "link-pass", ORIBI_FILE_OK) && so;
    return so ? 0 : 1;
}

static void test_what_may_not_be_read(void)
{
    make_site();
    make_folder("site/closed");
    make_folder("site/pass");
    make_file("site/closed/x", "x");
    make_file("site/pass/x", "x");
    make_file("site/closed-file", "x");
    make_link("closed", "site/link-closed");
    make_link(at("site/pass/x"), "site/link-pass");
    must(mkfifo(at("site/closed-fifo"), 0) == 0 && chmod(at("site/closed-fifo"), 0) == 0);
    must(chmod(at("site/closed"), 0) == 0 && chmod(at("site/closed-file"), 0) == 0 &&
         chmod(at("site/pass"), 0711) == 0);
    struct oribi_root *root = root_of("site", NULL, 0);
    if (only_on_linux("to look at a file takes the right to read it"))
        ok_eq(child_code(without_rights, root), 0);
    must(chmod(at("site/closed"), 0755) == 0);
    oribi_root_destroy(root);
    tree_end();
}

/* As container run-times do it to calls that they do not know. */
static bool forbid_openat2(uint32_t answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call comes first in struct seccomp_data */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int with_filter(void *data)
{
    const int *answer = data;
    struct oribi_root *before = NULL;
    struct oribi_root *after = NULL;
    if (oribi_root_create(&before, at("site"), NULL, 0, NULL) < 0 || !forbid_openat2((uint32_t)*answer) ||
        oribi_root_create(&after, at("site"), NULL, 0, NULL) < 0)
        return 2;
    if (!before->openat2 || after->openat2)
        return 3;
    bool so = is_so(before, "a/b/deep", ORIBI_FILE_OK) && is_so(after, "a/b/deep", ORIBI_FILE_OK);
    so = is_so(before, "link", ORIBI_FILE_OK) && is_so(before, "out", ORIBI_FILE_OUTSIDE) && so;
    return so ? 0 : 1;
}

static void test_a_kernel_or_filter_without_openat2(void)
{
    if (!only_on_linux("there is no openat2 to be refused"))
        return;
    int answers[] = {ENOSYS, EPERM};
    make_site();
    make_link(at("site/top"), "site/link");
    make_link("../outside/secret", "site/out");
    for (int i = 0; i < 2; i++)
        ok_eq(child_code(with_filter, &answers[i]), 0);
    tree_end();
}

static int without_descriptors(void *data)
{
    struct oribi_root *root = data;
    struct oribi_file_info info;
    int fd = -1;
    int next = dup(0);
    struct rlimit none = {(rlim_t)next, (rlim_t)next};
    close(next);
    if (setrlimit(RLIMIT_NOFILE, &none) < 0)
        return 2;
    enum oribi_file_verdict once = oribi_root_open(root, "top", &fd, &info);
    root->openat2 = false;
    enum oribi_file_verdict steps = oribi_root_open(root, "a/b/deep", &fd, &info);
    return once == ORIBI_FILE_LIMIT && steps == ORIBI_FILE_LIMIT && fd == -1 ? 0 : 1;
}

static void test_no_descriptor_left(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    ok_eq(child_code(without_descriptors, root), 0);
    oribi_root_destroy(root);
    tree_end();
}

/* --- a root's life --- */

static void test_what_is_no_root(void)
{
    make_site();
    struct oribi_root *root = NULL;
    const char *none[] = {at("site"), at("none")};
    int bad = -2;
    int before = open_descriptors();
    ok(oribi_root_create(&root, at("none"), NULL, 0, &bad) < 0);
    ok_eq(bad, -1);
    is_str(oribi_os_error_text(), "no such file or directory");
    ok(oribi_root_create(&root, at("site/top"), NULL, 0, &bad) < 0);
    is_str(oribi_os_error_text(), "not a directory");
    ok(oribi_root_create(&root, at("site"), none, 2, &bad) < 0);
    ok_eq(bad, 1);
    ok(!root);
    ok_eq(open_descriptors(), before);
    const char *many[ORIBI_ROOT_FOLDERS_MAX + 1];
    const char *outside = at("outside");
    for (int i = 0; i <= ORIBI_ROOT_FOLDERS_MAX; i++)
        many[i] = outside;
    ok_eq(oribi_root_create(&root, at("site"), many, ORIBI_ROOT_FOLDERS_MAX + 1, NULL), ORIBI_EINVAL);
    ok_eq(oribi_root_create(&root, at("site"), many, ORIBI_ROOT_FOLDERS_MAX, NULL), 0);
    oribi_root_destroy(root);
    oribi_root_destroy(NULL);
    ok_eq(open_descriptors(), before);
    tree_end();
}

static void test_a_relative_root_stays_where_it_was(void)
{
    make_site();
    char before[PATH_MAX];
    struct oribi_root *root = NULL;
    must(getcwd(before, sizeof(before)) && chdir(at("")) == 0);
    ok_eq(oribi_root_create(&root, "site", NULL, 0, NULL), 0);
    must(chdir("/") == 0);
    opens(root, "top", "top");
    ok_eq(oribi_root_refresh(root), 0);
    must(chdir(before) == 0);
    oribi_root_destroy(root);
    tree_end();
}

static void test_a_deployment_changes_the_link_to_the_root(void)
{
    tree_begin();
    make_folder("r1");
    make_folder("r2");
    make_file("r1/x", "one");
    make_file("r2/x", "two");
    make_link("r1", "current");
    make_link(at("current/x"), "r2/absolute");
    struct oribi_root *root = root_of("current", NULL, 0);
    opens(root, "x", "one");
    ok_eq(oribi_root_refresh(root), 0);
    ok_eq(oribi_root_generation(root), 0);
    change_link("r2", "current");
    opens(root, "x", "one"); /* not yet looked at */
    ok_eq(oribi_root_refresh(root), 1);
    ok_eq(oribi_root_generation(root), 1);
    opens(root, "x", "two");
    opens(root, "absolute", "two");
    ok_eq(oribi_root_refresh(root), 0);
    oribi_root_destroy(root);
    tree_end();
}

static void test_a_root_that_is_gone_stays_what_it_was(void)
{
    tree_begin();
    make_folder("r1");
    make_folder("r2");
    make_file("r1/x", "one");
    make_link("r1", "current");
    struct oribi_root *root = root_of("current", NULL, 0);
    int before = open_descriptors();
    remove_name("current");
    ok(oribi_root_refresh(root) < 0);
    opens(root, "x", "one");
    ok_eq(oribi_root_generation(root), 0);
    make_link("r2", "current");
    ok_eq(oribi_root_refresh(root), 1);
    refuses(root, "x", ORIBI_FILE_MISSING);
    ok_eq(open_descriptors(), before);
    oribi_root_destroy(root);
    tree_end();
}

/* The application closes the root's descriptor, and opens a folder of its own under the number. */
static void test_a_root_whose_descriptor_was_closed_is_opened_again(void)
{
    make_site();
    make_file("outside/top", "theirs");
    struct oribi_root *root = root_of("site", NULL, 0);
    int fd = root->folders[0].fd;
    close(fd);
    int theirs = open(at("outside"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(theirs == fd || (dup2(theirs, fd) == fd && close(theirs) == 0));
    ok_eq(oribi_root_refresh(root), 1);
    opens(root, "top", "top");
    ok_eq(oribi_root_refresh(root), 0);
    oribi_root_destroy(root);
    ok(fcntl(fd, F_GETFD) >= 0); /* it is theirs */
    close(fd);
    root = root_of("site", NULL, 0);
    close(root->folders[0].fd);
    remove_name("site/top");
    must(rename(at("site"), at("gone")) == 0);
    ok(oribi_root_refresh(root) < 0);
    refuses(root, "a/side", ORIBI_FILE_FAILED);
    must(rename(at("gone"), at("site")) == 0);
    ok_eq(oribi_root_refresh(root), 1);
    opens(root, "a/side", "side");
    oribi_root_destroy(root);
    tree_end();
}

static void test_states_of_a_file_differ(void)
{
    make_site();
    struct oribi_root *root = root_of("site", NULL, 0);
    struct oribi_file_info first;
    struct oribi_file_info second;
    int fd;
    ok_eq(oribi_root_open(root, "top", &fd, &first), ORIBI_FILE_OK);
    ok(oribi_file_look(fd, &second) && oribi_file_info_equal(&first, &second));
    age_file("site/top", time(NULL), 60);
    ok(oribi_file_look(fd, &second) && !oribi_file_info_equal(&first, &second));
    close(fd);
    ok(!oribi_file_look(fd, &second));
    oribi_root_destroy(root);
    tree_end();
}

/* --- races --- */

static atomic_bool racing;

/* Changes what the reader is looking at without pause: a link between inside and outside, a folder between a real one
 * and a link that leads out. Each state is put in place by one rename(2). */
static void *change_without_pause(void *data)
{
    while (atomic_load(&racing)) {
        change_link("../outside/secret", "site/flip");
        change_link("a/side", "site/flip");
        must(rename(at("site/moving"), at("site/resting")) == 0 && symlink("../outside", at("site/moving")) == 0);
        must(unlink(at("site/moving")) == 0 && rename(at("site/resting"), at("site/moving")) == 0);
        change_link(at("outside"), "site/hop");
        change_link(at("site/a"), "site/hop");
    }
    return NULL;
}

static void test_no_race_opens_what_lies_outside(void)
{
    enum { ROUNDS = 3000 };
    static const char *const paths[] = {"flip", "moving/secret", "hop/secret", "hop/side"};
    make_site();
    make_folder("site/moving");
    make_file("site/moving/secret", "inside");
    make_file("site/a/secret", "inside");
    make_link("a/side", "site/flip");
    make_link("a", "site/hop");
    struct oribi_root *root = root_of("site", NULL, 0);
    pthread_t thread;
    uint32_t leaked = 0;
    uint32_t found = 0;
    uint32_t strange = 0;
    int before = open_descriptors();
    atomic_store(&racing, true);
    must(pthread_create(&thread, NULL, change_without_pause, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        char text[8] = "";
        struct oribi_file_info info;
        int fd;
        root->openat2 = i % 2 == 0;
        enum oribi_file_verdict verdict = oribi_root_open(root, paths[i / 2 % 4], &fd, &info);
        if (verdict == ORIBI_FILE_OK) {
            found++;
            leaked += read(fd, text, 6) > 0 && strcmp(text, "secret") == 0;
            close(fd);
        } else {
            strange += verdict != ORIBI_FILE_MISSING && verdict != ORIBI_FILE_OUTSIDE && verdict != ORIBI_FILE_CHANGING;
        }
    }
    atomic_store(&racing, false);
    must(pthread_join(thread, NULL) == 0);
    ok_eq(leaked, 0);
    ok_eq(strange, 0);
    ok(found > 0);
    ok_eq(open_descriptors(), before);
    oribi_root_destroy(root);
    tree_end();
}

static void *replace_without_pause(void *data)
{
    while (atomic_load(&racing)) {
        replace_file("site/top", "one");
        replace_file("site/top", "two");
        change_link("top", "site/name");
    }
    return NULL;
}

/* rename(2) leaves no moment without a file under that name. */
static void test_a_file_that_is_replaced_is_always_there(void)
{
    enum { ROUNDS = 3000 };
    make_site();
    make_link("top", "site/name");
    struct oribi_root *root = root_of("site", NULL, 0);
    pthread_t thread;
    uint32_t missing = 0;
    atomic_store(&racing, true);
    must(pthread_create(&thread, NULL, replace_without_pause, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct oribi_file_info info;
        int fd;
        root->openat2 = i % 2 == 0;
        if (oribi_root_open(root, i / 2 % 2 ? "name" : "top", &fd, &info) == ORIBI_FILE_OK)
            close(fd);
        else
            missing++;
    }
    atomic_store(&racing, false);
    must(pthread_join(thread, NULL) == 0);
    ok_eq(missing, 0);
    oribi_root_destroy(root);
    tree_end();
}

static void test_verdicts_have_words(void)
{
    for (int verdict = ORIBI_FILE_OK; verdict <= ORIBI_FILE_FAILED; verdict++)
        ok(oribi_file_verdict_text((enum oribi_file_verdict)verdict)[0] != '\0');
}

int main(void)
{
    test_plain_files_and_folders();
    test_special_files();
    test_names_and_paths_that_are_too_long();
    test_paths_that_nobody_checked_stay_inside();
    test_links_that_stay_inside();
    test_links_that_lead_out();
    test_links_that_end_nowhere();
    test_folders_that_links_may_lead_to();
    test_magic_links_are_read_as_text();
    test_files_that_are_made_while_they_are_read();
    test_a_root_behind_links();
    test_the_whole_system_as_root();
    test_what_may_not_be_read();
    test_a_kernel_or_filter_without_openat2();
    test_no_descriptor_left();
    test_what_is_no_root();
    test_a_relative_root_stays_where_it_was();
    test_a_deployment_changes_the_link_to_the_root();
    test_a_root_that_is_gone_stays_what_it_was();
    test_a_root_whose_descriptor_was_closed_is_opened_again();
    test_states_of_a_file_differ();
    test_no_race_opens_what_lies_outside();
    test_a_file_that_is_replaced_is_always_there();
    test_verdicts_have_words();
    return done_testing();
}

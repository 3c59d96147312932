/* Log files: what is opened, what is not followed, whose a file is. Much of it needs root, and plays the workers'
 * user as uid 65534. */
#include "base/log_file.c"

#include "child.h"
#include "tap.h"

enum { NOBODY = 65534, SOMEBODY = 65533 };

static const struct oribi_log_owner nobody = {NULL, NOBODY, NOBODY};
static char dir[64];

/* A folder of root's (or ours) with a folder in it that is the workers'. */
static void begin(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/oribi-log-file-XXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
        exit(2);
}

static const char *in_dir(const char *name)
{
    static char paths[4][160];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", dir, name);
    return paths[turn];
}

static void end(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    ok_eq(system(command), 0);
}

static void make_folder(const char *name, uid_t uid, mode_t mode)
{
    if (mkdir(in_dir(name), 0700) < 0 || chown(in_dir(name), uid, uid) < 0 || chmod(in_dir(name), mode) < 0)
        exit(2);
}

static void make_file(const char *name, uid_t uid)
{
    int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || fchown(fd, uid, uid) < 0 || write(fd, "before\n", 7) != 7)
        exit(2);
    close(fd);
}

static uid_t owner_of(const char *name)
{
    struct stat file;
    return lstat(in_dir(name), &file) == 0 ? file.st_uid : (uid_t)-1;
}

/* The code of opening it, and closed again. */
static int opens(const char *path, const struct oribi_log_owner *owner)
{
    int fd = -1;
    bool stream;
    int code = oribi_log_file_open(path, owner, &fd, &stream);
    if (code == 0)
        close(fd);
    return code;
}

#define refused(path, owner, words)                                                                                    \
    do {                                                                                                               \
        ok_eq(opens(path, owner), ORIBI_ESYS);                                                                         \
        ok_named(strstr(oribi_os_error_text(), words) != NULL, "%s", oribi_os_error_text());                           \
    } while (0)

static bool is_root(const char *what)
{
    if (geteuid() == 0)
        return true;
    pass("%s", what);
    return false;
}

static void test_files_are_made_and_appended_to(void)
{
    int fd;
    bool stream;
    begin();
    ok_eq(oribi_log_file_open(in_dir("log"), NULL, &fd, &stream), 0);
    ok(!stream && fd > 2);
    ok_eq(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    refused(in_dir("none/log"), NULL, "no such file or directory");
    refused(dir, NULL, "is a directory");
    end();
}

static void test_descriptors_by_name_are_themselves(void)
{
    int fd;
    bool stream;
    int ends[2];
    char name[64];
    begin();
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    const char *const names[] = {"/dev/stdout", "/dev/stderr", "/dev/fd/2", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ok_named(oribi_log_file_open(names[i], NULL, &fd, &stream) == 0 && stream && fd > 2, "%s", names[i]);
        ok(oribi_os_same_file(fd, i % 3 == 0 ? 1 : 2));
        close(fd);
    }
    (void)snprintf(name, sizeof(name), "/dev/fd/%d", ends[1]);
    ok_eq(oribi_log_file_open(name, NULL, &fd, &stream), 0);
    ok(stream && oribi_os_same_file(fd, ends[1]));
    close(fd);
    ok_eq(opens("/dev/fd/1000000", NULL), ORIBI_ELOST);
    ok(opens("/dev/fd/x", NULL) < 0);
    /* A link to the stream, which images of containers have, opens it too. */
    ok_eq(symlink("/dev/stdout", in_dir("log")), 0);
    ok_eq(oribi_log_file_open(in_dir("log"), NULL, &fd, &stream), 0);
    ok(stream && oribi_os_same_file(fd, 1));
    close(fd);
    ok_eq(opens("/dev/null", NULL), 0);
    close(ends[0]);
    close(ends[1]);
    end();
}

static void test_a_pipe_without_reader_is_an_error_not_a_wait(void)
{
    int fd;
    bool stream;
    begin();
    if (mkfifo(in_dir("pipe"), 0600) < 0)
        exit(2);
    ok_eq(opens(in_dir("pipe"), NULL), ORIBI_ESYS);
    int reader = open(in_dir("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ok_eq(oribi_log_file_open(in_dir("pipe"), NULL, &fd, &stream), 0);
    ok_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    close(fd);
    close(reader);
    end();
}

static int open_links_as_user(void *data)
{
    (void)data;
    if (geteuid() == 0 && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
        return 77;
    if (opens(in_dir("theirs/own"), NULL) != 0)
        return 1;
    if (geteuid() == NOBODY && opens(in_dir("theirs/foreign"), NULL) != ORIBI_ESYS)
        return 2;
    return 0;
}

/* Nothing is gained by a link of one's own; a third user's may lead anywhere. */
static void test_a_user_follows_links_of_its_own_and_of_roots(void)
{
    begin();
    make_folder("theirs", geteuid() == 0 ? NOBODY : geteuid(), 0755);
    ok_eq(symlink("target", in_dir("theirs/own")), 0);
    if (geteuid() == 0) {
        ok_eq(symlink("target", in_dir("theirs/foreign")), 0);
        ok_eq(lchown(in_dir("theirs/own"), NOBODY, NOBODY), 0);
        ok_eq(lchown(in_dir("theirs/foreign"), SOMEBODY, SOMEBODY), 0);
    }
    ok_eq(child_code(open_links_as_user, NULL), 0);
    ok_eq(access(in_dir("theirs/target"), F_OK), 0);
    end();
}

/* The attack: a folder of the workers', and a link in the place of the log. */
static void test_root_does_not_follow_what_the_workers_may_change(void)
{
    if (!is_root("not root"))
        return;
    begin();
    make_folder("theirs", NOBODY, 0755);
    make_file("precious", 0);
    ok_eq(symlink(in_dir("precious"), in_dir("theirs/log")), 0);
    ok_eq(lchown(in_dir("theirs/log"), NOBODY, NOBODY), 0);
    refused(in_dir("theirs/log"), &nobody, "it is a symbolic link of user 65534 in a folder of others");
    refused(in_dir("theirs/log"), NULL, "it is a symbolic link");
    ok_eq(lchown(in_dir("theirs/log"), 0, 0), 0); /* one of root's that was moved there */
    refused(in_dir("theirs/log"), &nobody, "it is a symbolic link");
    ok_eq(owner_of("precious"), 0);
    ok_eq(unlink(in_dir("theirs/log")), 0);
    ok_eq(link(in_dir("precious"), in_dir("theirs/log")), 0);
    refused(in_dir("theirs/log"), &nobody, "it has 2 names (hard links)");
    refused(in_dir("theirs/log"), NULL, "it has 2 names (hard links)");
    ok_eq(owner_of("precious"), 0);
    ok_eq(unlink(in_dir("theirs/log")), 0);
    make_file("theirs/log", SOMEBODY);
    refused(in_dir("theirs/log"), &nobody, "it belongs to user 65533");
    ok_eq(owner_of("theirs/log"), SOMEBODY);
    end();
}

/* The folder itself is swapped: root would find the log's name in a folder of its own. */
static void test_root_does_not_go_where_the_workers_lead_it(void)
{
    if (!is_root("not root"))
        return;
    begin();
    make_folder("roots", 0, 0755);
    make_file("roots/log", 0);
    make_folder("theirs", NOBODY, 0755);
    ok_eq(symlink(in_dir("roots"), in_dir("theirs/logs")), 0);
    refused(in_dir("theirs/logs/log"), &nobody, "who may write a folder on the way there");
    ok_eq(owner_of("roots/log"), 0);
    refused(in_dir("theirs/logs/new"), &nobody, "who may write a folder on the way there");
    ok(access(in_dir("roots/new"), F_OK) < 0);
    end();
}

static void test_files_are_the_workers_wherever_they_are(void)
{
    if (!is_root("not root"))
        return;
    begin();
    make_folder("theirs", NOBODY, 0755);
    make_folder("roots", 0, 0755);
    make_folder("hidden", 0, 0700);
    ok_eq(opens(in_dir("theirs/log"), &nobody), 0);
    ok_eq(owner_of("theirs/log"), NOBODY);
    ok_eq(opens(in_dir("roots/log"), &nobody), 0); /* they may not make it, but have it */
    ok_eq(owner_of("roots/log"), NOBODY);
    make_file("roots/old", 0);
    ok_eq(opens(in_dir("roots/old"), &nobody), 0); /* logrotate's `create` as root */
    ok_eq(owner_of("roots/old"), NOBODY);
    make_file("theirs/old", 0);
    ok_eq(opens(in_dir("theirs/old"), &nobody), 0); /* of a time when the server ran as root */
    ok_eq(owner_of("theirs/old"), NOBODY);
    ok_eq(opens(in_dir("hidden/log"), &nobody), 0);
    ok_eq(owner_of("hidden/log"), NOBODY);
    ok_eq(opens(in_dir("roots/plain"), NULL), 0);
    ok_eq(owner_of("roots/plain"), 0);
    const struct oribi_log_owner group = {NULL, (uid_t)-1, NOBODY};
    struct stat file;
    ok_eq(opens(in_dir("roots/group"), &group), 0);
    ok_eq(stat(in_dir("roots/group"), &file), 0);
    ok(file.st_uid == 0 && file.st_gid == NOBODY);
    end();
}

static void test_roots_own_links_are_followed_in_roots_folders(void)
{
    if (!is_root("not root"))
        return;
    begin();
    make_folder("roots", 0, 0755);
    make_folder("loose", 0, 0777);
    ok_eq(symlink("../target", in_dir("roots/log")), 0);
    ok_eq(opens(in_dir("roots/log"), &nobody), 0);
    ok_eq(owner_of("target"), NOBODY);
    ok_eq(owner_of("roots/log"), 0);
    ok_eq(symlink("../target", in_dir("loose/log")), 0);
    refused(in_dir("loose/log"), &nobody, "it is a symbolic link of user 0 in a folder of others");
    ok_eq(symlink("/dev/stderr", in_dir("loose/stream")), 0); /* leads to what is open already */
    ok_eq(opens(in_dir("loose/stream"), &nobody), 0);
    ok_eq(symlink("round", in_dir("roots/round")), 0);
    refused(in_dir("roots/round"), &nobody, "too many links");
    ok_eq(symlink("/proc/1/fd/2", in_dir("roots/init")), 0); /* the first process of a container; what there is of it */
    ok(opens(in_dir("roots/init"), &nobody) <= 0);
    end();
}

/* Whatever happened, root is root again. */
static void test_rights_come_back(void)
{
    gid_t groups[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, groups);
    uid_t uid = geteuid();
    gid_t gid = getegid();
    const struct oribi_log_owner named = {"nobody", NOBODY, NOBODY};
    begin();
    make_folder("theirs", uid == 0 ? NOBODY : uid, 0755);
    (void)opens(in_dir("theirs/log"), &named);
    (void)opens(in_dir("none/log"), &named);
    ok_eq(geteuid(), uid);
    ok_eq(getegid(), gid);
    ok_eq(getgroups(GROUPS_MAX, groups), count);
    end();
}

int main(void)
{
    (void)umask(022);
    test_files_are_made_and_appended_to();
    test_descriptors_by_name_are_themselves();
    test_a_pipe_without_reader_is_an_error_not_a_wait();
    test_a_user_follows_links_of_its_own_and_of_roots();
    test_root_does_not_follow_what_the_workers_may_change();
    test_root_does_not_go_where_the_workers_lead_it();
    test_files_are_the_workers_wherever_they_are();
    test_roots_own_links_are_followed_in_roots_folders();
    test_rights_come_back();
    return done_testing();
}

#include "supervisor/pid_file.c"

#include "child.h"
#include "system.h"
#include "tap.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char dir[64];
static char path[96];
static char error[ORIBI_ERROR_TEXT_CAP];

static void begin(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/oribi-pid-file-test-XXXXXX");
    ok(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/pid", dir);
    error[0] = '\0';
}

/* Nothing is left in the folder. */
static void end(void)
{
    ok(rmdir(dir) == 0);
}

/* The pid that a reader finds: 0 when there is no file, -1 when it is empty. */
static long seen(void)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    oribi_os_close(fd);
    return n > 0 ? strtol(text, NULL, 10) : -1;
}

static void leave(const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ok(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    oribi_os_close(fd);
}

static void test_there_is_no_file_before_there_is_a_pid_in_it(void)
{
    struct oribi_pid_file file;
    begin();
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(seen(), 0);
    is_str(oribi_pid_file_name(&file), path);
    ok_eq(oribi_pid_file_write(&file, error), 0);
    ok_eq(seen(), getpid());
    is_str(oribi_pid_file_name(&file), path);
    oribi_pid_file_remove(&file);
    end();
}

static void test_a_lock_that_is_given_up_leaves_nothing(void)
{
    struct oribi_pid_file file;
    begin();
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    oribi_pid_file_remove(&file);
    end();
}

static void test_of_two_who_find_none_the_first_to_write_has_it(void)
{
    struct oribi_pid_file first;
    struct oribi_pid_file second;
    char want[ORIBI_ERROR_TEXT_CAP];
    begin();
    ok_eq(oribi_pid_file_lock(&first, path, error), 0);
    ok_eq(oribi_pid_file_lock(&second, path, error), 0);
    ok_eq(oribi_pid_file_write(&second, error), 0);
    ok_eq(oribi_pid_file_write(&first, error), ORIBI_ELIMIT);
    (void)snprintf(want, sizeof(want), "pid_file: %s belongs to a running server, pid %d", path, getpid());
    is_str(error, want);
    ok_eq(first.fd, -1);
    ok_eq(seen(), getpid());
    ok_eq(oribi_pid_file_lock(&first, path, error), ORIBI_ELIMIT);
    oribi_pid_file_remove(&second);
    end();
}

/* Somebody was faster, and has died since. */
static void test_a_file_that_came_and_is_stale_is_taken_over(void)
{
    struct oribi_pid_file file;
    begin();
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    leave("1234567890\n");
    ok_eq(oribi_pid_file_write(&file, error), 0);
    ok_eq(seen(), getpid());
    oribi_pid_file_remove(&file);
    end();
}

static void test_a_stale_file_keeps_its_text_until_it_has_another(void)
{
    struct oribi_pid_file file;
    begin();
    leave("1234567890\n");
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(seen(), 1234567890);
    ok_eq(oribi_pid_file_write(&file, error), 0);
    ok_eq(seen(), getpid());
    oribi_pid_file_remove(&file);
    end();
}

/* A daemon locks as its starter, and writes as itself. */
static void test_the_pid_is_that_of_the_process_that_writes(void)
{
    struct oribi_pid_file file;
    begin();
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(oribi_pid_file_write(&file, error) == 0 && seen() == getpid() ? 0 : 1);
    int status = -1;
    ok(waitpid(pid, &status, 0) == pid);
    ok_eq(status, 0);
    ok_eq(unlink(path), 0);
    oribi_pid_file_forget(&file);
    end();
}

static void test_drafts_of_the_dead_are_in_nobodys_way(void)
{
    struct oribi_pid_file file;
    char left[128];
    begin();
    (void)snprintf(left, sizeof(left), "%s.%ld-0", path, (long)getpid());
    oribi_os_close(open(left, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(oribi_pid_file_write(&file, error), 0);
    ok_eq(seen(), getpid());
    oribi_pid_file_remove(&file);
    ok_eq(unlink(left), 0);
    end();
}

/* --- what is not replaced --- */

static const char *text_of(const char *name)
{
    static char text[64];
    memset(text, 0, sizeof(text));
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
        return "";
    oribi_os_close(fd);
    return text;
}

static void check_refused(const char *words)
{
    struct oribi_pid_file file;
    char want[ORIBI_ERROR_TEXT_CAP];
    (void)snprintf(want, sizeof(want), "pid_file: %s %s", path, words);
    ok_eq(oribi_pid_file_lock(&file, path, error), ORIBI_ESYS);
    is_str(error, want);
    ok_eq(file.fd, -1);
}

static void test_links_are_not_followed(void)
{
    char target[128];
    begin();
    (void)snprintf(target, sizeof(target), "%s/target", dir);
    ok_eq(symlink(target, path), 0);
    check_refused("is a symbolic link, which is not followed");
    ok(access(target, F_OK) < 0);
    int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    ok_eq(write(fd, "1234\n", 5), 5);
    oribi_os_close(fd);
    check_refused("is a symbolic link, which is not followed");
    is_str(text_of(target), "1234\n");
    ok_eq(unlink(target), 0);
    ok_eq(unlink(path), 0);
    end();
}

static void test_a_file_with_something_else_in_it_stays_as_it_is(void)
{
    static const char *const texts[] = {"precious", "12 34\n", "1234\nmore", "\n", "1234567890123456789012345\n",
                                        "-1\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        begin();
        leave(texts[i]);
        check_refused("holds something else than a pid: not replaced");
        is_str(text_of(path), texts[i]);
        ok_eq(unlink(path), 0);
        end();
    }
}

static void test_a_file_with_two_names_stays_as_it_is(void)
{
    char other[128];
    begin();
    (void)snprintf(other, sizeof(other), "%s/other", dir);
    leave("1234\n");
    ok_eq(link(path, other), 0);
    check_refused("has 2 names (hard links): not replaced");
    is_str(text_of(other), "1234\n");
    ok_eq(unlink(other), 0);
    ok_eq(unlink(path), 0);
    end();
}

static void test_what_is_no_file_is_no_pid_file(void)
{
    begin();
    ok_eq(mkfifo(path, 0600), 0); /* opening one must not wait for the other end */
    check_refused("is not a regular file");
    ok_eq(unlink(path), 0);
    ok_eq(mkdir(path, 0700), 0);
    check_refused("is not a regular file");
    ok_eq(rmdir(path), 0);
    end();
}

static void test_another_users_file_stays_as_it_is(void)
{
    if (geteuid() != 0) {
        pass("not root: nobody else has files here");
        return;
    }
    begin();
    leave("1234\n");
    ok_eq(chown(path, 65534, 65534), 0);
    check_refused("belongs to user 65534: not replaced");
    is_str(text_of(path), "1234\n");
    ok_eq(unlink(path), 0);
    end();
}

static void test_the_other_name_of_an_upgrade_is_not_taken_from_others(void)
{
    struct oribi_pid_file file;
    char old[128];
    char was[128];
    begin();
    (void)snprintf(old, sizeof(old), "%s.old", path);
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(oribi_pid_file_write(&file, error), 0);
    (void)snprintf(was, sizeof(was), "%s", path);
    (void)snprintf(path, sizeof(path), "%.60s/pid.old", dir);
    leave("precious");
    ok_eq(oribi_pid_file_rename(&file, old), ORIBI_ESYS);
    ok(strstr(oribi_os_error_text(), "holds something else than a pid") != NULL);
    is_str(text_of(old), "precious");
    ok_eq(unlink(old), 0);
    leave("1234\n");
    ok_eq(oribi_pid_file_rename(&file, old), 0);
    ok_eq(oribi_pid_file_rename(&file, was), 0);
    is_str(oribi_pid_file_name(&file), was);
    oribi_pid_file_remove(&file);
    end();
}

/* --- locks of those who may only read --- */

static int wait_fds[2];

/* Locks the file as anybody can, says so, and holds the lock until it is killed. */
static _Noreturn void hold_as_reader(bool by_flock)
{
    struct flock read_lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (geteuid() == 0 && setuid(65534) < 0)
        _exit(1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (by_flock ? flock(fd, LOCK_EX | LOCK_NB) : fcntl(fd, F_SETLK, &read_lock)) < 0)
        _exit(2);
    if (write(wait_fds[1], "x", 1) != 1)
        _exit(3);
    for (;;)
        pause();
}

static void test_a_lock_of_a_reader_keeps_no_server_from_starting(void)
{
    for (int by_flock = 0; by_flock < 2; by_flock++) {
        struct oribi_pid_file file;
        struct oribi_pid_file second;
        if (by_flock && !only_on_linux("a server's own lock is such a one"))
            break;
        char byte;
        begin();
        ok_eq(chmod(dir, 0755), 0);
        leave("1234\n");
        ok_eq(pipe2(wait_fds, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
            hold_as_reader(by_flock);
        oribi_os_close(wait_fds[1]);
        ok_eq(read(wait_fds[0], &byte, 1), 1);
        ok_eq(oribi_pid_file_lock(&file, path, error), 0);
        ok_eq(oribi_pid_file_write(&file, error), 0);
        ok_eq(seen(), getpid());
        ok_eq(oribi_pid_file_lock(&second, path, error), ORIBI_ELIMIT);
        ok_eq(kill(pid, SIGKILL), 0);
        ok(waitpid(pid, NULL, 0) == pid);
        oribi_os_close(wait_fds[0]);
        oribi_pid_file_remove(&file);
        end();
    }
}

static void test_a_draft_is_nobodys_to_lock_and_then_everybodys_to_read(void)
{
    struct oribi_pid_file file;
    struct stat made;
    begin();
    mode_t saved = umask(0);
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    (void)umask(saved);
    ok_eq(fstat(file.fd, &made), 0);
    ok_eq(made.st_mode & 07777, 0644);
    oribi_pid_file_remove(&file);
    end();
}

/* --- two at a time --- */

/* Begins when the gate's other end is closed; one that has the file lives until all have said that they have come so
 * far, which closes the end. */
static int start(int gate_fd, int said_fd, int end_fd)
{
    struct oribi_pid_file file;
    char byte = '.';
    (void)!read(gate_fd, &byte, 1);
    int code = oribi_pid_file_lock(&file, path, error);
    if (code == 0)
        code = oribi_pid_file_write(&file, error);
    (void)!write(said_fd, &byte, 1);
    oribi_os_close(said_fd);
    if (code == 0)
        (void)!read(end_fd, &byte, 1);
    return code == 0 ? 0 : code == ORIBI_ELIMIT ? 1 : 2;
}

/* Both find the file of one that is dead. */
static void test_of_two_who_find_a_stale_one_the_first_has_it(void)
{
    enum { ROUNDS = 40, SERVERS = 3 };
    int winners[SERVERS + 1] = {0};
    int broken = 0;
    begin();
    for (int round = 0; round < ROUNDS; round++) {
        pid_t pids[SERVERS];
        int gate[2];
        int said[2];
        int end_of[2];
        int won = 0;
        char byte;
        leave("1234\n");
        if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0 || pipe2(end_of, O_CLOEXEC) < 0)
            exit(2);
        for (int i = 0; i < SERVERS; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                oribi_os_close(gate[1]);
                oribi_os_close(end_of[1]);
                _exit(start(gate[0], said[1], end_of[0]));
            }
        }
        oribi_os_close(gate[0]);
        oribi_os_close(said[1]);
        oribi_os_close(end_of[0]);
        oribi_os_close(gate[1]);
        while (read(said[0], &byte, 1) == 1)
            continue;
        oribi_os_close(end_of[1]);
        oribi_os_close(said[0]);
        for (int i = 0; i < SERVERS; i++) {
            int status = -1;
            (void)waitpid(pids[i], &status, 0);
            won += status == 0;
            broken += !WIFEXITED(status) || WEXITSTATUS(status) > 1;
        }
        winners[won]++;
        (void)unlink(path);
    }
    ok_eq(winners[1], ROUNDS);
    ok_eq(broken, 0);
    end();
}

static int write_without_room(void *data)
{
    struct oribi_pid_file file;
    const struct rlimit none = {0, RLIM_INFINITY};
    (void)data;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (oribi_pid_file_lock(&file, path, error) != 0 || setrlimit(RLIMIT_FSIZE, &none) < 0)
        return 1;
    if (oribi_pid_file_write(&file, error) != ORIBI_ESYS || file.fd >= 0)
        return 2;
    return strstr(error, "pid_file: cannot write ") == error && strstr(error, ": file too large") ? 0 : 3;
}

static void test_without_room_the_stale_one_stays(void)
{
    begin();
    leave("1234\n");
    ok_eq(child_code(write_without_room, NULL), 0);
    ok_eq(seen(), 1234);
    ok_eq(unlink(path), 0);
    end();
}

static void test_no_folder(void)
{
    struct oribi_pid_file file;
    ok_eq(oribi_pid_file_lock(&file, "/nowhere/at/all.pid", error), ORIBI_ESYS);
    is_str(error, "pid_file: cannot open /nowhere/at/all.pid: no such file or directory");
    ok_eq(file.fd, -1);
}

static void test_a_folder_that_goes_meanwhile(void)
{
    struct oribi_pid_file file;
    begin();
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(unlink(file.path), 0);
    end();
    ok_eq(oribi_pid_file_write(&file, error), ORIBI_ESYS);
    ok(strstr(error, "pid_file: cannot create ") == error);
    ok_eq(file.fd, -1);
}

int main(void)
{
    test_there_is_no_file_before_there_is_a_pid_in_it();
    test_a_lock_that_is_given_up_leaves_nothing();
    test_of_two_who_find_none_the_first_to_write_has_it();
    test_a_file_that_came_and_is_stale_is_taken_over();
    test_a_stale_file_keeps_its_text_until_it_has_another();
    test_the_pid_is_that_of_the_process_that_writes();
    test_drafts_of_the_dead_are_in_nobodys_way();
    test_links_are_not_followed();
    test_a_file_with_something_else_in_it_stays_as_it_is();
    test_a_file_with_two_names_stays_as_it_is();
    test_what_is_no_file_is_no_pid_file();
    test_another_users_file_stays_as_it_is();
    test_the_other_name_of_an_upgrade_is_not_taken_from_others();
    test_a_lock_of_a_reader_keeps_no_server_from_starting();
    test_a_draft_is_nobodys_to_lock_and_then_everybodys_to_read();
    test_of_two_who_find_a_stale_one_the_first_has_it();
    test_without_room_the_stale_one_stays();
    test_no_folder();
    test_a_folder_that_goes_meanwhile();
    return done_testing();
}

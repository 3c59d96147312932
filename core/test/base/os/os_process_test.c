/* How a process was started, and starting it again. */
#include "base/os/os_process.c"
#include "base/os/os_start.c"

#include "tap.h"

#include <sched.h>

static const char *find(char **list, const char *name)
{
    const char *value = value_of(list, name);
    return value ? value : "(none)";
}

static void test_the_start_is_what_the_kernel_recorded(int argc, char **argv)
{
    struct oribi_start start;
    char here[PATH_MAX];
    ok_eq(oribi_start_record(&start, NULL, false, NULL), 0);
    is_str(start.argv[0], argv[0]);
    ok(!start.argv[argc]);
    is_str(find(start.environ, "PATH"), getenv("PATH"));
    struct stat recorded;
    struct stat real;
    ok(stat(start.dir, &recorded) == 0 && stat(getcwd(here, sizeof(here)), &real) == 0);
    ok_eq(recorded.st_ino, real.st_ino);
    (void)setenv("SET_SINCE", "1", 1);
    is_str(find(start.environ, "SET_SINCE"), "(none)");
    oribi_start_free(&start);
}

static void test_a_given_command_line_counts(void)
{
    struct oribi_start start;
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"exit 3", NULL};
    pid_t pid = -1;
    int status = -1;
    char *extra[] = {NULL};
    ok_eq(oribi_start_record(&start, argv, false, NULL), 0);
    argv[2] = NULL; /* it is copied */
    is_str(start.argv[2], "exit 3");
    ok_eq(oribi_start_again(&start, extra, NULL, 0, &pid), 0);
    ok_eq(oribi_process_reap(pid, true, &status), pid);
    ok_eq(status, 3 << 8);
    oribi_start_free(&start);
}

static void test_a_given_environment_counts(void)
{
    struct oribi_start start;
    char *given[] = {(char *)"ONLY=1", NULL};
    ok_eq(oribi_start_record(&start, NULL, false, NULL), 0);
    oribi_start_set_environ(&start, given);
    given[0] = NULL; /* it is copied */
    is_str(find(start.environ, "ONLY"), "1");
    is_str(find(start.environ, "PATH"), "(none)");
    oribi_start_free(&start);
}

/* A shell that is told to end by signals that are held. */
static void test_a_process_becomes_its_command(void)
{
    static const int held[] = {SIGHUP, SIGUSR1};
    struct oribi_start start;
    int status = -1;
    int fds[2];
    char number[16];
    char text[16] = "";
    char *extra[] = {number, NULL};
    char *argv[] = {(char *)"/bin/sh", (char *)"-c",
                    (char *)"kill -HUP $$; kill -USR1 $$; eval \"echo kept >&$NUMBER\"; exit 3", NULL};
    ok(pipe(fds) == 0);
    (void)fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    (void)snprintf(number, sizeof(number), "NUMBER=%d", fds[1]);
    ok_eq(oribi_start_record(&start, argv, false, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        oribi_start_become(&start, extra, &fds[1], 1, held, 2);
        _exit(9);
    }
    ok_eq(oribi_process_reap(pid, true, &status), pid);
    ok_eq(status, 3 << 8);
    ok_eq(read(fds[0], text, sizeof(text) - 1), 5);
    is_str(text, "kept\n");
    start.argv[0][0] = '?';
    oribi_start_become(&start, extra, NULL, 0, held, 0);
    ok(true); /* it goes on where there is no such command */
    start.argv[0][0] = '/';
    oribi_start_free(&start);
    close(fds[0]);
    close(fds[1]);
}

static void test_held_signals_reach_who_has_arrived(void)
{
    static const int held[] = {SIGHUP};
    sigset_t mask;
    (void)signal(SIGHUP, SIG_IGN);
    oribi_start_arrive(held, 1, false);
    struct sigaction action;
    ok(sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    ok(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && sigismember(&mask, SIGHUP) == 1);
    (void)signal(SIGHUP, SIG_IGN); /* a handler of ours */
    oribi_start_arrive(held, 1, true);
    ok(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0 && sigismember(&mask, SIGHUP) == 0);
    (void)signal(SIGHUP, SIG_DFL);
}

static const char *split(const char *p, size_t n, bool environment)
{
    static char text[64];
    struct oribi_buf buf = {0};
    int code = oribi__os_split_started(oribi_slice(p, n), environment, &buf);
    for (size_t i = 0; i < buf.len; i++)
        text[i] = buf.p[i] ? buf.p[i] : '|';
    text[buf.len] = '\0';
    oribi_buf_deinit(&buf);
    return code < 0 ? "refused" : text;
}

/* A number of words, the program's path with any number of NULs, the words, the environment, an empty string. */
static void test_a_start_as_macos_tells_it(void)
{
    static const char rest[] = "/bin/ruby\0\0\0ruby\0-e\0\0A=1\0B=\0\0more";
    char all[sizeof(int) + sizeof(rest)];
    int words = 3;
    memcpy(all, &words, sizeof(words));
    memcpy(all + sizeof(words), rest, sizeof(rest));
    is_str(split(all, sizeof(all), false), "ruby|-e||");
    is_str(split(all, sizeof(all), true), "A=1|B=|");
    for (size_t n = 0; n < sizeof(words) + 21; n++)
        is_str(split(all, n, false), "refused");
    is_str(split(all, sizeof(words) + 21, false), "ruby|-e||"); /* cut: no environment */
    is_str(split(all, sizeof(words) + 21, true), "");
    words = 0;
    memcpy(all, &words, sizeof(words));
    is_str(split(all, sizeof(all), false), "refused");
    words = 100;
    memcpy(all, &words, sizeof(words));
    is_str(split(all, sizeof(all), true), "refused");
}

static void test_a_child_that_has_ended_is_seen_before_it_is_reaped(void)
{
    int status = -1;
    int gate[2];
    char byte;
    ok_eq(oribi_process_ended(), ORIBI_ESYS);
    ok(pipe(gate) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(read(gate[0], &byte, 1) == 1 ? 5 : 6);
    ok_eq(oribi_process_ended(), 0);
    ok(write(gate[1], "x", 1) == 1);
    pid_t seen;
    while ((seen = oribi_process_ended()) == 0)
        sched_yield();
    ok_eq(seen, pid);
    ok_eq(oribi_process_ended(), pid);
    ok_eq(oribi_process_reap(pid, false, &status), pid);
    ok_eq(status, 5 << 8);
    ok_eq(oribi_process_ended(), ORIBI_ESYS);
    close(gate[0]);
    close(gate[1]);
}

static void test_directory_environment_and_descriptors_of_the_new_start(void)
{
    char dir[] = "/tmp/oribi-process-XXXXXX";
    char link[64];
    int fds[2];
    char text[256] = "";
    pid_t pid = -1;
    int status = -1;
    ok(mkdtemp(dir) != NULL);
    snprintf(link, sizeof(link), "%s.link", dir);
    ok(symlink(dir, link) == 0);
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo \"$ONE $TWO $(pwd)\" >&$FD", NULL};
    struct oribi_start start;
    ok_eq(oribi_start_record(&start, argv, false, NULL), 0);
    oribi_mem_free(start.dir);
    start.dir = copy_text(link);
    ok(pipe2(fds, O_CLOEXEC) == 0);
    char fd_text[32];
    snprintf(fd_text, sizeof(fd_text), "FD=%d", fds[1]);
    char *extra[] = {(char *)"ONE=1", (char *)"TWO=2", fd_text, NULL};
    int keep[] = {fds[1]};
    oribi_mem_free(start.environ[0]);
    start.environ[0] = copy_text("ONE=old"); /* is replaced, not doubled */
    ok_eq(oribi_start_again(&start, extra, keep, 1, &pid), 0);
    ok_eq(oribi_process_reap(pid, true, &status), pid);
    ok_eq(status, 0);
    ok(read(fds[0], text, sizeof(text) - 1) > 0);
    char want[128];
    snprintf(want, sizeof(want), "1 2 %s\n", dir);
    is_str(text, want);
    close(fds[0]);
    close(fds[1]);
    ok(unlink(link) == 0 && rmdir(dir) == 0);
    oribi_start_free(&start);
}

static void test_a_missing_file_that_the_command_needs_is_told(void)
{
    struct oribi_start start;
    char *argv[] = {(char *)"/bin/true", NULL};
    char *extra[] = {NULL};
    pid_t pid = -1;
    ok_eq(oribi_start_record(&start, argv, false, "/tmp"), 0);
    oribi_start_set_needed(&start, "nowhere/Gemfile");
    ok(oribi_start_again(&start, extra, NULL, 0, &pid) < 0);
    is_str(oribi_os_error_text(), "a file that it needs is missing: /tmp/nowhere/Gemfile");
    ok_eq(pid, -1);
    oribi_start_free(&start);
}

static void test_a_folder_that_is_gone_is_told(void)
{
    struct oribi_start start;
    char *argv[] = {(char *)"/bin/true", NULL};
    char *extra[] = {NULL};
    pid_t pid = -1;
    ok_eq(oribi_start_record(&start, argv, false, "/nowhere"), 0);
    ok(oribi_start_again(&start, extra, NULL, 0, &pid) < 0);
    is_str(oribi_os_error_text(), "the folder that it was started in cannot be entered: /nowhere");
    ok_eq(pid, -1);
    oribi_start_free(&start);
}

static void test_a_command_that_is_gone_ends_with_127(void)
{
    struct oribi_start start;
    char *argv[] = {(char *)"/nowhere/command", NULL};
    char *extra[] = {NULL};
    pid_t pid = -1;
    int status = -1;
    ok_eq(oribi_start_record(&start, argv, false, NULL), 0);
    ok_eq(oribi_start_again(&start, extra, NULL, 0, &pid), 0);
    ok_eq(oribi_process_reap(pid, true, &status), pid);
    ok_eq(status, 127 << 8);
    oribi_start_free(&start);
}

static void taken(int number)
{
    (void)number;
}

/* A child that is told to stop between fork and exec still has our handlers, and stops all the same. */
static void test_a_start_that_is_stopped_at_once_ends(void)
{
    char *argv[] = {"sleep", "3", NULL};
    char *extra[] = {NULL};
    struct oribi_start start;
    struct sigaction action = {.sa_handler = taken};
    struct sigaction before;
    ok_eq(oribi_start_record(&start, argv, false, NULL), 0);
    ok_eq(sigaction(SIGTERM, &action, &before), 0);
    int stopped = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid;
        int status;
        if (oribi_start_again(&start, extra, NULL, 0, &pid) < 0 || kill(pid, SIGTERM) < 0)
            break;
        if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
            stopped++;
    }
    ok_eq(stopped, 20);
    sigset_t blocked;
    ok_eq(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    ok(!sigismember(&blocked, SIGTERM)); /* ours is as it was */
    ok_eq(sigaction(SIGTERM, &before, NULL), 0);
    oribi_start_free(&start);
}

static void test_pwd_names_the_directory_only_where_it_leads_there(void)
{
    char *good[] = {(char *)"PWD=/proc/self/cwd", NULL};
    char *other[] = {(char *)"PWD=/", NULL};
    char *relative[] = {(char *)"PWD=tmp", NULL};
    char here[PATH_MAX];
    ok(chdir("/tmp") == 0);
    ok(getcwd(here, sizeof(here)) != NULL);
    char *dir = working_dir(good);
    is_str(dir, "/proc/self/cwd");
    oribi_mem_free(dir);
    dir = working_dir(other);
    is_str(dir, here);
    oribi_mem_free(dir);
    dir = working_dir(relative);
    is_str(dir, here);
    oribi_mem_free(dir);
}

static void test_users_by_name_and_number(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    uid_t uid;
    gid_t gid;
    ok_eq(oribi_process_find_user("root", NULL, &uid, &gid, error), 0);
    ok(uid == 0 && gid == 0);
    ok_eq(oribi_process_find_user("4711", "815", &uid, &gid, error), 0);
    ok(uid == 4711 && gid == 815);
    ok_eq(oribi_process_find_user(NULL, NULL, &uid, &gid, error), 0);
    ok(uid == (uid_t)-1 && gid == (gid_t)-1);
    ok_eq(oribi_process_find_user("root", "no-such-group", &uid, &gid, error), ORIBI_EINVAL);
    is_str(error, "group: there is no group 'no-such-group'");
}

/* In a process of its own: a process that has given its rights away does not get them back. */
static void test_only_root_may_become_another_user(void)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int status = -1;
    if (geteuid() != 0) {
        tap_skip(1, "needs a start as root");
        return;
    }
    ok_eq(oribi_process_check_user("4711", "815", error), 0);
    ok_eq(oribi_process_check_user("no-such-user", NULL, error), ORIBI_EINVAL);
    pid_t pid = fork();
    if (pid == 0) {
        int failed = setgid(815) < 0 || setuid(4711) < 0;
        failed |= oribi_process_check_user("4711", "815", error) != 0;
        failed |= oribi_process_check_user(NULL, NULL, error) != 0;
        failed |= oribi_process_check_user("4711", "816", error) != ORIBI_EINVAL;
        failed |= oribi_process_check_user("root", NULL, error) != ORIBI_EINVAL;
        failed |= strcmp(error, "user: only root can change to root, and this is user 4711: start as root, or leave "
                                "user and group out") != 0;
        _exit(failed);
    }
    ok(pid > 0 && waitpid(pid, &status, 0) == pid);
    ok_eq(status, 0);
}

static void test_memory_of_a_process(void)
{
    struct oribi_process_shares shares;
    if (oribi_process_descriptors(getpid()) < 0) {
        tap_skip(1, "this system does not tell");
        return;
    }
    ok(oribi_process_shares(getpid(), &shares) && shares.own_bytes > 0 &&
       shares.proportional_bytes >= shares.own_bytes);
    ok(!oribi_process_shares(INT_MAX, &shares));
    int64_t before = oribi_process_descriptors(getpid());
    int fd = dup(0);
    ok_eq(oribi_process_descriptors(getpid()), before + 1);
    ok_eq(close(fd), 0);
    ok_eq(oribi_process_descriptors(INT_MAX), -1);
    struct oribi_process_look look;
    oribi_process_look(getpid(), &look);
    ok(look.resident_bytes > 0 && look.threads == 1 && !look.stopped);
    oribi_process_look(INT_MAX, &look);
    ok(look.resident_bytes == 0 && look.threads == 0);
}

/* Child and grandchild are; parent, init and ourselves are not. */
static void test_which_processes_are_below_us(void)
{
    if (!oribi_os_adopts_orphans()) {
        ok(oribi_process_is_below(getppid())); /* not known here */
        return;
    }
    int fds[2];
    pid_t grandchild = -1;
    ok_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        grandchild = fork();
        if (grandchild != 0)
            (void)!write(fds[1], &grandchild, sizeof(grandchild));
        for (;;)
            (void)pause();
    }
    ok_eq(read(fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    ok(oribi_process_is_below(child));
    ok(oribi_process_is_below(grandchild));
    ok(!oribi_process_is_below(getppid()));
    ok(!oribi_process_is_below(1));
    ok(!oribi_process_is_below(getpid()));
    (void)kill(grandchild, SIGKILL);
    (void)kill(child, SIGKILL);
    ok_eq(waitpid(child, NULL, 0), child);
    ok(!oribi_process_is_below(child));
    close(fds[0]);
    close(fds[1]);
}

int main(int argc, char **argv)
{
    test_the_start_is_what_the_kernel_recorded(argc, argv);
    test_a_process_becomes_its_command();
    test_held_signals_reach_who_has_arrived();
    test_a_start_as_macos_tells_it();
    test_a_given_command_line_counts();
    test_a_given_environment_counts();
    test_which_processes_are_below_us();
    test_a_child_that_has_ended_is_seen_before_it_is_reaped();
    test_directory_environment_and_descriptors_of_the_new_start();
    test_a_folder_that_is_gone_is_told();
    test_a_missing_file_that_the_command_needs_is_told();
    test_a_command_that_is_gone_ends_with_127();
    test_a_start_that_is_stopped_at_once_ends();
    test_pwd_names_the_directory_only_where_it_leads_there();
    test_users_by_name_and_number();
    test_only_root_may_become_another_user();
    test_memory_of_a_process();
    return done_testing();
}

/* Calls that a confined frontend cannot make any more. Each look is a child's, which is confined for good. */
#include "frontend/os_confine_linux.c"

#include "tap.h"

#include "oribi/base/os/os_process.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/oribi-confine-XXXXXX";

static bool refused(long result)
{
    return result < 0 && errno == EPERM;
}

static void *nothing(void *self)
{
    return self;
}

/* Gives the number of the look that failed, as an exit code; 0: none. */
static int look(bool named)
{
    char path[64];
    pthread_t thread;
    int pair[2];
    struct stat file;
    int got = 0;
    if (oribi_confine_calls(named ? "/none" : dir, false) < 0)
        return 99;
    if (!refused(open("/etc/passwd", O_RDONLY)))
        got = 1;
    if (!refused(socket(AF_INET, SOCK_STREAM, 0)))
        got = 2;
    if (!refused(fork()))
        got = 3;
    if (!refused(syscall(SYS_execve, "/bin/true", NULL, NULL)))
        got = 4;
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED || errno != EPERM)
        got = 5;
    if (!refused(kill(getppid(), 0)))
        got = 6;
    if (!refused(prctl(PR_SET_DUMPABLE, 1)))
        got = 7;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || fstat(pair[0], &file) < 0)
        got = 8;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        got = 9;
    (void)snprintf(path, sizeof(path), "%s/new", dir);
    int fd = named ? open(path, O_RDWR | O_CREAT | O_EXCL, 0600) : open(dir, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0 || pwrite(fd, "a", 1, 0) != 1)
        got = 10;
    if (named && (unlink(path) < 0 || !refused(open("/etc/passwd", O_RDWR | O_CREAT, 0600))))
        got = 11;
    if (!named && !refused(open(path, O_RDWR | O_CREAT | O_EXCL, 0600)))
        got = 12;
    return got;
}

/* Where it reads files: it only reads them. */
static int look_at_reading(bool named)
{
    struct stat file;
    int got = 0;
    if (oribi_confine_calls(dir, true) < 0)
        return 99;
    int fd = open("/etc/passwd", O_RDONLY);
    int folder_fd = open("/etc", O_PATH | O_DIRECTORY);
    if (fd < 0 || folder_fd < 0 || stat("/etc/passwd", &file) < 0 || lstat("/etc/passwd", &file) < 0)
        got = 1;
    if (openat(folder_fd, "passwd", O_RDONLY | O_NOFOLLOW) < 0)
        got = 2;
    if (!refused(open("/etc/passwd", O_WRONLY)) || !refused(open("/etc/passwd", O_RDWR)) ||
        !refused(open("/etc/passwd", O_RDONLY | O_TRUNC)) || !refused(open("/tmp/none", O_RDONLY | O_CREAT, 0600)))
        got = 3;
    if (!refused(socket(AF_INET, SOCK_STREAM, 0)) || !refused(fork()))
        got = 4;
    if (unshare(CLONE_FS) < 0 || chdir("/etc") < 0 || stat("passwd", &file) < 0 || !refused(unshare(CLONE_FILES)))
        got = 5;
    char real[PATH_MAX];
    if (!realpath("/usr/../etc/", real) || strcmp(real, "/etc") != 0)
        got = 6;
    return got;
}

static int looked(int (*probe)(bool named), bool named)
{
    int status = -1;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(probe(named));
    ok(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void test_a_confined_process(void)
{
    int got = looked(look, false);
    if (got == 99) {
        printf("# this kernel or build has no filters: nothing is looked at\n");
        return;
    }
    ok_eq(got, 0);
    ok_eq(looked(look, true), 0);
    ok_eq(looked(look_at_reading, false), 0);
}

/* As in a container whose own filter knows no seccomp(2). */
static void test_a_kernel_that_refuses(void)
{
    int status = -1;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct program program = {.count = 0};
        load(&program, offsetof(struct seccomp_data, nr));
        add(&program, BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1);
        answer(&program, SECCOMP_RET_ERRNO | ENOSYS);
        answer(&program, SECCOMP_RET_ALLOW);
        struct sock_fprog filter = {program.count, program.items};
        oribi_confine_rights();
        (void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter); /* without filters it refuses anyway */
        _exit(oribi_confine_calls(dir, false) == ORIBI_ESYS && access("/etc/passwd", R_OK) == 0 ? 0 : 1);
    }
    ok(waitpid(pid, &status, 0) == pid);
    ok_eq(status, 0);
}

static void test_memory_is_for_nobody(void)
{
    int status = -1;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit cores;
        oribi_confine_memory();
        oribi_confine_rights();
        bool right = prctl(PR_GET_DUMPABLE) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 &&
                     getrlimit(RLIMIT_CORE, &cores) == 0 && cores.rlim_max == 0;
        _exit(right ? 0 : 1);
    }
    ok(waitpid(pid, &status, 0) == pid);
    ok_eq(status, 0);
}

int main(void)
{
    ok(mkdtemp(dir) != NULL);
    test_a_confined_process();
    test_a_kernel_that_refuses();
    test_memory_is_for_nobody();
    ok(rmdir(dir) == 0);
    return done_testing();
}

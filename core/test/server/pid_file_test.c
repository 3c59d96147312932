#include "server/pid_file.c"

#include "tap.h"

#include <stdlib.h>
#include <sys/wait.h>

static char dir[64];
static char path[96];
static char error[ORIBI_OPTIONS_ERROR_CAP];

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

/* What a reader finds: 0 when there is no file, -1 when it is empty. */
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
    char want[ORIBI_OPTIONS_ERROR_CAP];
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

static void test_a_link_that_leads_nowhere_leads_to_the_file(void)
{
    struct oribi_pid_file file;
    char target[128];
    begin();
    (void)snprintf(target, sizeof(target), "%s/target", dir);
    ok_eq(symlink(target, path), 0);
    ok_eq(oribi_pid_file_lock(&file, path, error), 0);
    ok_eq(oribi_pid_file_write(&file, error), 0);
    ok_eq(seen(), getpid());
    oribi_pid_file_remove(&file);
    ok_eq(unlink(target), 0);
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
    test_a_link_that_leads_nowhere_leads_to_the_file();
    test_no_folder();
    test_a_folder_that_goes_meanwhile();
    return done_testing();
}

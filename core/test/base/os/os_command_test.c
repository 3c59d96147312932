/* Programs that are run for what they print. */
#include "base/os/os_command.c"

#include "tap.h"

static char output[64];
static char error[ORIBI_ERROR_TEXT_CAP];

/* A shell runs the text: the tests' way to have a program that does it. */
static int run(const char *text, size_t cap, int64_t timeout_ms, size_t *len)
{
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)text, NULL};
    struct oribi_command command = {
        .argv = argv, .input_fd = -1, .timeout_ms = timeout_ms, .output = output, .cap = cap};
    memset(output, 0, sizeof(output));
    error[0] = '\0';
    int code = oribi_os_run_command(&command, error);
    *len = command.len;
    return code;
}

static void test_what_it_prints(void)
{
    size_t len;
    ok_eq(run("echo one; echo two", sizeof(output), 20000, &len), 0);
    ok_eq(len, 8);
    is_str(output, "one\ntwo\n");
    ok_eq(run("printf 1234", 4, 20000, &len), 0);
    ok_eq(len, 4);
    ok_eq(run("cat", sizeof(output), 20000, &len), 0); /* its input is empty */
    ok_eq(len, 0);
}

static void fails(const char *text, size_t cap, int64_t timeout_ms, const char *why)
{
    size_t len;
    ok_eq(run(text, cap, timeout_ms, &len), ORIBI_EINVAL);
    is_str(error, why);
}

static void test_how_it_fails(void)
{
    fails("printf 12345", 4, 20000, "printed more than 4 bytes");
    fails("exit 3", 4, 20000, "ended with exit code 3");
    fails("kill -9 $$", 4, 20000, "was ended by signal 9");
    fails("sleep 100", 4, 50, "ran longer than 0.1 s");
    fails("exec >&-; sleep 100", 4, 50, "ran longer than 0.1 s"); /* its output has ended, and it has not */
    char *argv[] = {(char *)"/none/such", NULL};
    struct oribi_command command = {.argv = argv, .input_fd = -1, .timeout_ms = 20000, .output = output, .cap = 4};
    ok_eq(oribi_os_run_command(&command, error), ORIBI_EINVAL);
    /* POSIX leaves both to posix_spawn(3): a child that shares no memory with us, as under qemu, exits with 127. */
    ok_named(strncmp(error, "cannot be started: ", 19) == 0 || strcmp(error, "ended with exit code 127") == 0, "%s",
             error);
}

/* A process that the command has started holds the output open, and ends with the command. */
static void test_nothing_is_left_of_it(void)
{
    int fds[2];
    size_t len;
    char text[64];
    char byte;
    ok(pipe(fds) == 0);
    (void)snprintf(text, sizeof(text), "sleep 100 2>&%d & sleep 100", fds[1]);
    ok_eq(run(text, 4, 50, &len), ORIBI_EINVAL);
    (void)close(fds[1]);
    ok_eq(read(fds[0], &byte, 1), 0); /* else it blocks: nobody has the other end any more */
    (void)close(fds[0]);
}

int main(void)
{
    test_what_it_prints();
    test_how_it_fails();
    test_nothing_is_left_of_it();
    return done_testing();
}

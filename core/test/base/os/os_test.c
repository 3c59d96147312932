/* The OS layer: codes for errors, descriptors that do not leak, files, processes. */
#include <stdio.h>
#include <sys/socket.h>

#include "base/os/os.c"

#include "oribi/base/clock.h"

#include "base/loopback.h"
#include "child.h"
#include "tap.h"
#include "words.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/un.h>

static bool is_cloexec(int fd)
{
    return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

static bool is_nonblocking(int fd)
{
    return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0;
}

static void test_errno_becomes_a_code_with_words(void)
{
    static const struct {
        int number;
        int code;
    } expected[] = {
        {EAGAIN, ORIBI_AGAIN},    {ECONNRESET, ORIBI_ECLOSED}, {EPIPE, ORIBI_ECLOSED}, {ETIMEDOUT, ORIBI_ECLOSED},
        {EMFILE, ORIBI_ELIMIT},   {ENFILE, ORIBI_ELIMIT},      {ENOMEM, ORIBI_ENOMEM}, {ENOBUFS, ORIBI_ENOMEM},
        {EADDRINUSE, ORIBI_ESYS}, {EACCES, ORIBI_ESYS},
    };
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        errno = expected[i].number;
        ok_named(oribi_os_fail() == expected[i].code, "errno %d is code %d", expected[i].number, expected[i].code);
    }
    errno = EADDRINUSE;
    (void)oribi_os_fail();
    is_str(oribi_os_error_text(), words_of(EADDRINUSE));
    ok(!oribi_os_address_missing());
    errno = EADDRNOTAVAIL;
    (void)oribi_os_fail();
    ok(oribi_os_address_missing());
}

static void test_closing_leaves_errno_and_takes_minus_one(void)
{
    errno = ENOTTY;
    oribi_os_close(-1);
    oribi_os_close(987654);
    ok_eq(errno, ENOTTY);
}

static void test_flags_go_on_and_off(void)
{
    int ends[2];
    if (pipe(ends) < 0)
        exit(2);
    ok(oribi_os_set_nonblock(ends[0], true) == 0 && is_nonblocking(ends[0]));
    ok(oribi_os_set_nonblock(ends[0], false) == 0 && !is_nonblocking(ends[0]));
    ok(oribi_os_set_cloexec(ends[0], true) == 0 && is_cloexec(ends[0]));
    ok(oribi_os_set_cloexec(ends[0], false) == 0 && !is_cloexec(ends[0]));
    oribi_os_close(ends[0]);
    oribi_os_close(ends[1]);
    ok_eq(oribi_os_set_nonblock(ends[0], true), ORIBI_ELOST);
    is_str(oribi_os_error_text(), "bad file descriptor");
}

static void test_reading_and_writing_tell_apart_later_and_gone(void)
{
    int ends[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        exit(2);
    ok_eq(oribi_os_read(ends[0], &byte, 1), ORIBI_AGAIN);
    ok_eq(oribi_os_write(ends[1], "x", 1), 1);
    ok_eq(oribi_os_read(ends[0], &byte, 1), 1);
    struct iovec vec[2] = {{"ab", 2}, {"cd", 2}};
    ok_eq(oribi_os_send_vec(ends[1], vec, 2), 4);
    oribi_os_close(ends[1]);
    char rest[8];
    ok_eq(oribi_os_read(ends[0], rest, sizeof(rest)), 4);
    ok_eq(oribi_os_read(ends[0], rest, sizeof(rest)), 0);
    ok_eq(oribi_os_send_vec(ends[0], vec, 2), ORIBI_ECLOSED); /* and no SIGPIPE */
    oribi_os_close(ends[0]);
}

/* A file with a size limit takes a part of them at a time: then none. */
static void test_all_bytes_are_written_or_a_code_says_why(void)
{
    struct rlimit before;
    char text[3000] = "";
    int file;
    ok_eq(oribi_os_temp_file(&file), 0);
    ok_eq(oribi_os_write_all(file, text, sizeof(text)), 0);
    ok_eq(lseek(file, 0, SEEK_CUR), sizeof(text));
    ok_eq(oribi_os_write_all(file, text, 0), 0);
    ok_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 4000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ok_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ok(oribi_os_write_all(file, text, sizeof(text)) < 0);
    ok_eq(lseek(file, 0, SEEK_CUR), 4000);
    ok_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    oribi_os_close(file);
}

static void test_more_vectors_than_the_kernel_takes_are_cut(void)
{
    int ends[2];
    struct iovec vec[IOV_MAX + 1];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        exit(2);
    for (size_t i = 0; i < IOV_MAX + 1; i++)
        vec[i] = (struct iovec){"x", 1};
    ok_eq(oribi_os_send_vec(ends[0], vec, IOV_MAX), IOV_MAX);
    ok_eq(oribi_os_send_vec(ends[0], vec, IOV_MAX + 1), IOV_MAX);
    int file;
    ok_eq(oribi_os_temp_file(&file), 0);
    ok_eq(oribi_os_write_vec(file, vec, IOV_MAX), IOV_MAX);
    ok_eq(oribi_os_write_vec(file, vec, IOV_MAX + 1), IOV_MAX);
    oribi_os_close(file);
    ok_eq(oribi_os_write_vec(file, vec, 1), ORIBI_ELOST);
    oribi_os_close(ends[0]);
    oribi_os_close(ends[1]);
}

static void test_accepted_sockets_are_cloexec_and_nonblocking(void)
{
    struct sockaddr_in address;
    struct sockaddr_storage peer;
    socklen_t len = 0;
    int fd = -1;
    int listener = listen_tcp(&address);
    ok_eq(oribi_os_accept(listener, &fd, &peer, &len), ORIBI_AGAIN);
    int client = connect_tcp(&address);
    wait_readable(listener);
    ok_eq(oribi_os_accept(listener, &fd, &peer, &len), 0);
    ok(is_cloexec(fd) && is_nonblocking(fd));
    ok(peer.ss_family == AF_INET && len == sizeof(struct sockaddr_in));
    oribi_os_close(fd);
    oribi_os_close(client);
    client = connect_tcp(&address);
    wait_readable(listener);
    ok_eq(oribi_os_accept(listener, &fd, NULL, NULL), 0);
    oribi_os_close(fd);
    oribi_os_close(client);
    oribi_os_close(listener);
}

static int accept_without_descriptors(void *data)
{
    struct sockaddr_in address;
    int fd;
    (void)data;
    int listener = listen_tcp(&address);
    (void)connect_tcp(&address);
    wait_readable(listener);
    int lowest_free = dup(0);
    struct rlimit limit = {(rlim_t)lowest_free, (rlim_t)lowest_free};
    close(lowest_free);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 2;
    return oribi_os_accept(listener, &fd, NULL, NULL) == ORIBI_ELIMIT ? 0 : 1;
}

static void test_accept_without_free_descriptors_is_a_limit(void)
{
    ok_eq(child_code(accept_without_descriptors, NULL), 0);
}

static void test_send_file_moves_the_offset_and_stops_at_the_end(void)
{
    int ends[2];
    int file;
    int64_t offset = 2;
    char got[16];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0 || oribi_os_temp_file(&file) < 0)
        exit(2);
    ok_eq(oribi_os_write(file, "0123456789", 10), 10);
    ok_eq(oribi_os_send_file(ends[0], file, &offset, 5), 5);
    ok_eq(offset, 7);
    ok_eq(oribi_os_read(ends[1], got, sizeof(got)), 5);
    is_bytes(got, 5, "23456", 5);
    ok_eq(oribi_os_send_file(ends[0], file, &offset, 100), 3);
    ok_eq(oribi_os_send_file(ends[0], file, &offset, 100), 0);
    ok_eq(offset, 10);
    oribi_os_close(ends[1]);
    offset = 0;
    signal(SIGPIPE, SIG_IGN);
    ok_eq(oribi_os_send_file(ends[0], file, &offset, 5), ORIBI_ECLOSED);
    oribi_os_close(ends[0]);
    oribi_os_close(file);
}

static void check_temp_file(const char *what, int code, int fd)
{
    struct stat info;
    ok_named(code == 0, "%s: opens", what);
    ok_named(fstat(fd, &info) == 0 && info.st_nlink == 0 && info.st_size == 0, "%s: has no name", what);
    ok_named((info.st_mode & 0777) == 0600, "%s: is ours alone", what);
    ok_named(is_cloexec(fd), "%s: is CLOEXEC", what);
    oribi_os_close(fd);
}

static void test_temp_files_have_no_name(void)
{
    char dir[] = "/tmp/oribi-os-XXXXXX";
    if (!mkdtemp(dir))
        exit(2);
    int fd = -1;
    int code;
    setenv("TMPDIR", dir, 1);
    code = oribi_os_temp_file(&fd);
    check_temp_file("in TMPDIR", code, fd);
    setenv("TMPDIR", "", 1);
    code = oribi_os_temp_file(&fd);
    check_temp_file("TMPDIR empty", code, fd);
    code = open_named(dir, &fd);
    check_temp_file("where a name is needed for a moment", code, fd);
    fd = -1;
    setenv("TMPDIR", "/proc/self", 1); /* a directory that takes no new files */
    ok(oribi_os_temp_file(&fd) < 0 && fd == -1);
    setenv("TMPDIR", "/nonexistent", 1);
    ok_eq(oribi_os_temp_file(&fd), ORIBI_ESYS);
    is_str(oribi_os_error_text(), "no such file or directory");
    unsetenv("TMPDIR");
    ok_eq(rmdir(dir), 0); /* nothing was left in it */
}

static void test_a_line_is_cut_at_its_newline_and_its_room(void)
{
    char line[64];
    char path[] = "/tmp/oribi-line-XXXXXX";
    int fd = mkstemp(path);
    ok_eq(write(fd, "one two\nthree\n", 14), 14);
    ok_eq(oribi_os_read_line(path, line, sizeof(line)), 0);
    is_str(line, "one two");
    ok_eq(oribi_os_read_line(path, line, 4), 0);
    is_str(line, "one");
    oribi_os_close(fd);
    unlink(path);
    ok_eq(oribi_os_read_line(path, line, sizeof(line)), ORIBI_ESYS);
}

static void test_paths_become_absolute(void)
{
    char path[PATH_MAX];
    char small[8];
    char dir[PATH_MAX];
    char expected[PATH_MAX + 8];
    ok(getcwd(dir, sizeof(dir)) != NULL);
    ok_eq(oribi_os_absolute_path("/a/b", path, sizeof(path)), 0);
    is_str(path, "/a/b");
    ok_eq(oribi_os_absolute_path("b", path, sizeof(path)), 0);
    snprintf(expected, sizeof(expected), "%s/b", dir);
    is_str(path, expected);
    ok_eq(oribi_os_absolute_path("/1234567", small, sizeof(small)), ORIBI_ESYS);
    ok_eq(oribi_os_absolute_path("/123456", small, sizeof(small)), 0);
}

static void test_many_wakes_count_as_one(void)
{
    struct oribi_wake wake;
    ok_eq(oribi_wake_create(&wake), 0);
    ok(is_cloexec(wake.read_fd) && is_nonblocking(wake.read_fd));
    ok(!oribi_wake_clear(&wake));
    errno = ENOTTY;
    oribi_wake_notify(&wake);
    oribi_wake_notify(&wake);
    ok_eq(errno, ENOTTY);
    wait_readable(wake.read_fd);
    ok(oribi_wake_clear(&wake));
    ok(!oribi_wake_clear(&wake));
    oribi_wake_destroy(&wake);
    ok_eq(wake.read_fd, -1);
}

/* Both parts of the time count, on processors with 32 bits too. */
static void test_a_masked_wait_lasts_as_long_as_it_is_told(void)
{
    static const int64_t waits_us[] = {0, 20 * 1000, 1001 * 1000};
    struct oribi_wake wake;
    sigset_t none;
    sigemptyset(&none);
    ok_eq(oribi_wake_create(&wake), 0);
    struct pollfd fd = {.fd = wake.read_fd, .events = POLLIN};
    for (size_t i = 0; i < sizeof(waits_us) / sizeof(waits_us[0]); i++) {
        int64_t begun_us = oribi_clock_us();
        ok_eq(oribi_os_poll_masked(&fd, 1, waits_us[i], &none), 0);
        ok_named(oribi_clock_us() - begun_us >= waits_us[i], "not over before %lld us", (long long)waits_us[i]);
    }
    oribi_wake_notify(&wake);
    ok_eq(oribi_os_poll_masked(&fd, 1, 60 * 1000 * 1000, &none), 1);
    oribi_wake_destroy(&wake);
}

static void test_unix_sockets_say_whether_a_process_listens(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dir[] = "/tmp/oribi-un-XXXXXX";
    if (!mkdtemp(dir))
        exit(2);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", dir);
    ok_eq(oribi_os_unix_answers(address.sun_path), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(2);
    ok_eq(oribi_os_unix_answers(address.sun_path), 0); /* bound, not listening */
    if (listen(fd, 0) < 0)
        exit(2);
    ok_eq(oribi_os_unix_answers(address.sun_path), 1);
    for (int i = 0; i < 4; i++) /* the queue is full now: EAGAIN */
        ok_eq(oribi_os_unix_answers(address.sun_path), 1);
    close(fd);
    ok_eq(oribi_os_unix_answers(address.sun_path), 0);
    unlink(address.sun_path);
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        exit(2);
    ok_eq(oribi_os_unix_answers(address.sun_path), 1); /* EPROTOTYPE: another program's */
    close(fd);
    unlink(address.sun_path);
    rmdir(dir);
}

static void test_peer_credentials_are_those_of_the_other_end(void)
{
    int ends[2];
    struct oribi_peer peer;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        exit(2);
    ok_eq(oribi_os_peer(ends[0], &peer), 0);
    ok((peer.pid == getpid() || peer.pid == 0) && peer.uid == geteuid() && peer.gid == getegid());
    oribi_os_close(ends[0]);
    oribi_os_close(ends[1]);
    ok(oribi_os_peer(0, &peer) < 0);
}

/* Processes */

/* A grandchild whose parent ends must become our child. */
static int adopt_orphan(void *data)
{
    (void)data;
    if (oribi_os_become_subreaper() < 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        pid_t orphan = fork();
        _exit(orphan == 0 ? 42 : 0);
    }
    int status;
    int codes = 0;
    for (int i = 0; i < 2; i++) {
        if (wait(&status) < 0)
            return 2;
        codes += WEXITSTATUS(status);
    }
    return codes;
}

static void test_a_subreaper_gets_its_orphans(void)
{
    if (oribi_os_adopts_orphans())
        ok_eq(child_code(adopt_orphan, NULL), 42);
    else
        tap_skip(1, "this system has no subreaper");
}

/* The child's parent ends after the child has asked for the signal: the signal ends the child, seen as the end of
 * the pipe. */
static void test_a_parents_death_is_signalled(void)
{
    if (!oribi_os_adopts_orphans()) {
        tap_skip(1, "the end of a parent is no signal");
        return;
    }
    int ends[2];
    char byte;
    if (pipe(ends) < 0)
        exit(2);
    fflush(stdout);
    pid_t parent = fork();
    if (parent == 0) {
        int ready[2];
        if (pipe(ready) < 0)
            _exit(1);
        pid_t self = getpid();
        if (fork() == 0) {
            close(ends[0]);
            if (oribi_os_signal_on_parent_death(SIGKILL, self) != 0 || write(ready[1], "r", 1) != 1)
                _exit(1);
            alarm(20);
            for (;;)
                pause();
        }
        close(ready[1]);
        _exit(read(ready[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(ends[1]);
    int status;
    waitpid(parent, &status, 0);
    ok_eq(WEXITSTATUS(status), 0);
    wait_readable(ends[0]);
    ok_eq(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

static int ask_for_another_parent(void *data)
{
    (void)data;
    return oribi_os_signal_on_parent_death(SIGTERM, 1) == ORIBI_ECLOSED && getppid() != 1 ? 0 : 1;
}

static void test_a_parent_that_is_gone_already_is_reported(void)
{
    ok_eq(child_code(ask_for_another_parent, NULL), 0);
}

/* In a child: limits are the process's. */
static int raise_descriptors(void *data)
{
    struct rlimit limit = {.rlim_cur = 40, .rlim_max = 60};
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1;
    if (oribi_os_want_descriptors(40) != 40 || oribi_os_want_descriptors(30) != 40)
        return 2;
    if (oribi_os_want_descriptors(50) != 50)
        return 3;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur != 50 || limit.rlim_max != 60)
        return 4;
    if (oribi_os_want_descriptors(61) != 60 || oribi_os_want_descriptors(1000) != 60)
        return 5;
    return 0;
}

static void test_descriptors_are_raised_up_to_the_hard_limit_and_never_lowered(void)
{
    ok_eq(child_code(raise_descriptors, NULL), 0);
}

/* In a child: of 40, the 20th descriptor is the first that raises the limit, and a child of its own gets 40 back. */
static int raise_descriptors_late(void *data)
{
    struct rlimit limit = {.rlim_cur = 40, .rlim_max = 60};
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1;
    oribi_os_allow_descriptors(50);
    if (oribi_os_lift(19) != 19 || oribi_os_lift(-1) != -1 || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
        limit.rlim_cur != 40)
        return 2;
    if (oribi_os_lift(20) != 20 || getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur != 50)
        return 3;
    if (oribi_os_raise_descriptors())
        return 4; /* once is enough */
    oribi_os_restore_descriptors();
    return getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur != 40 || limit.rlim_max != 60 ? 5 : 0;
}

static void test_descriptors_are_raised_when_half_are_in_use(void)
{
    ok_eq(child_code(raise_descriptors_late, NULL), 0);
}

static bool is_null_device(int fd)
{
    struct stat file;
    struct stat null_file;
    return fstat(fd, &file) == 0 && stat("/dev/null", &null_file) == 0 && file.st_rdev == null_file.st_rdev;
}

static void close_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
}

static bool are_filled(void)
{
    for (int fd = 0; fd <= 2; fd++)
        /* programs the application starts have them too */
        if (!is_null_device(fd) || (fcntl(fd, F_GETFD) & FD_CLOEXEC))
            return false;
    return true;
}

static int fill_streams(void *data)
{
    struct oribi_wake wake = {-1, -1};
    (void)data;
    close_standard_streams();
    oribi_os_fill_standard_streams();
    int lowest = dup(0); /* whoever started the test may have left a 3 */
    close(lowest);
    if (!are_filled() || lowest <= 2 || oribi_wake_create(&wake) < 0 || wake.read_fd != lowest)
        return 1;
    close(1);
    oribi_os_fill_standard_streams();
    return are_filled() ? 0 : 2;
}

static void test_closed_standard_streams_are_filled(void)
{
    for (int fd = 3; fd < 64; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    ok_eq(child_code(fill_streams, NULL), 0);
}

/* Everything that makes a descriptor, with all three streams closed before. */
static int lift_all(void *data)
{
    struct oribi_wake wake = {-1, -1};
    int pair[2];
    int fd;
    (void)data;
    for (int i = 0; i < 5; i++) {
        close_standard_streams();
        switch (i) {
        case 0:
            fd = oribi_wake_create(&wake) == 0 ? wake.read_fd : -1;
            break;
        case 1:
            fd = oribi_os_temp_file(&fd) == 0 ? fd : -1;
            break;
        case 2:
            fd = oribi_os_open_read("/etc/passwd", &fd) == 0 ? fd : -1;
            break;
        case 3:
            fd = oribi_os_lift_pair(pipe2(pair, O_CLOEXEC), pair) == 0 && pair[0] > 2 ? pair[1] : -1;
            break;
        default:
            fd = open_named("/tmp", &fd) == 0 ? fd : -1;
        }
        if (fd <= 2 || !are_filled())
            return i + 1;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            return 10 + i;
    }
    return 0;
}

static void test_no_descriptor_of_ours_is_a_standard_stream(void)
{
    ok_eq(child_code(lift_all, NULL), 0);
}

static int accept_with_closed_streams(void *data)
{
    int listen_fd = *(int *)data;
    int fd;
    close(2);
    if (oribi_os_accept(listen_fd, &fd, NULL, NULL) != 0)
        return 1;
    if (fd <= 2 || !(fcntl(fd, F_GETFL) & O_NONBLOCK) || !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
        return 2;
    return is_null_device(2) ? 0 : 3;
}

static void test_an_accepted_connection_is_no_standard_stream(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(bind(listen_fd, (struct sockaddr *)&address, len) == 0 && listen(listen_fd, 8) == 0);
    ok(getsockname(listen_fd, (struct sockaddr *)&address, &len) == 0);
    ok(connect(client, (struct sockaddr *)&address, len) == 0);
    ok_eq(child_code(accept_with_closed_streams, &listen_fd), 0);
    oribi_os_close(client);
    oribi_os_close(listen_fd);
}

/* A number is there for the connection, none for its copy above 2. */
static int lift_without_room(void *data)
{
    struct rlimit limit = {3, 3};
    (void)data;
    close(2);
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 1;
    errno = 0;
    if (oribi_os_lift(open("/etc/passwd", O_RDONLY | O_CLOEXEC)) != -1 || (errno != EMFILE && errno != EINVAL))
        return 2;
    return is_null_device(2) ? 0 : 3;
}

static void test_a_descriptor_that_cannot_be_lifted_is_closed(void)
{
    ok_eq(child_code(lift_without_room, NULL), 0);
    ok_eq(oribi_os_lift(-1), -1);
}

static void test_room_for_descriptors_is_found_out(void)
{
    struct rlimit before;
    (void)getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit limit = before;
    int lowest = dup(0);
    close(lowest);
    limit.rlim_cur = (rlim_t)lowest;
    ok_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ok(oribi_os_can_open(0, 0));
    ok(!oribi_os_can_open(0, 1));
    limit.rlim_cur = (rlim_t)lowest + 1;
    ok_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ok(oribi_os_can_open(0, 1));
    ok(!oribi_os_can_open(0, 2));
    (void)setrlimit(RLIMIT_NOFILE, &before);
    ok(oribi_os_can_open(0, 4));
    ok_eq(dup(0), lowest); /* nothing was left open */
    close(lowest);
}

int main(void)
{
    test_room_for_descriptors_is_found_out();
    test_errno_becomes_a_code_with_words();
    test_closing_leaves_errno_and_takes_minus_one();
    test_flags_go_on_and_off();
    test_reading_and_writing_tell_apart_later_and_gone();
    test_all_bytes_are_written_or_a_code_says_why();
    test_more_vectors_than_the_kernel_takes_are_cut();
    test_accepted_sockets_are_cloexec_and_nonblocking();
    test_accept_without_free_descriptors_is_a_limit();
    test_descriptors_are_raised_up_to_the_hard_limit_and_never_lowered();
    test_descriptors_are_raised_when_half_are_in_use();
    test_send_file_moves_the_offset_and_stops_at_the_end();
    test_temp_files_have_no_name();
    test_a_line_is_cut_at_its_newline_and_its_room();
    test_paths_become_absolute();
    test_many_wakes_count_as_one();
    test_a_masked_wait_lasts_as_long_as_it_is_told();
    test_unix_sockets_say_whether_a_process_listens();
    test_peer_credentials_are_those_of_the_other_end();
    test_a_subreaper_gets_its_orphans();
    test_a_parents_death_is_signalled();
    test_a_parent_that_is_gone_already_is_reported();
    test_closed_standard_streams_are_filled();
    test_no_descriptor_of_ours_is_a_standard_stream();
    test_an_accepted_connection_is_no_standard_stream();
    test_a_descriptor_that_cannot_be_lifted_is_closed();
    return done_testing();
}

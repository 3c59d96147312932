/* A supervisor, driven by the steps of process.h, to which every other process lies: records of its molds and workers,
 * lines on its control socket, signals, deaths, time. The processes are not real: the functions that would start or
 * end one are defined below and note the call.
 *
 * The input is a list of events, one byte each and its arguments. Holds for every input: the supervisor comes to WAIT
 * after each event, signals no process group, removes no file but its own socket, and leaves neither descriptors nor
 * memory behind. */
#include "ours.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "base/clock_ahead.h"
#include "base/mem_counted.h"
#include "supervisor/process_private.h"
#include "oribi/supervisor/message.h"
#include "oribi/observe/context.h"
#include "supervisor/signals.h"
#include "supervisor/start.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORD, MESSAGE, SIGNAL, CONTROL_LINE, DEATH, TIME, CONTROL_LEAVES, SUCCESSOR, EVENTS };
enum { TURNS_MAX = 5000, CLIENTS = 10, FIRST_PID = 5000000, EVENTS_MAX = 200 };

static struct oribi_process *process;
static char socket_path[64];
static int null_fd;
static int32_t last_pid; /* of a process that was started; they are numbered */
static int32_t dead_pid; /* the child that oribi_process_ended() gives; 0: none */
static int dead_status;
static int child_fds[8]; /* ends that a started program would hold; -1: none */
static uint32_t child_count;
static int clients[CLIENTS]; /* of the control socket; -1: none */
static bool fork_fails;
static bool running; /* an input runs: the fuzzer calls kill() and unlink() too */

/* --- instead of processes --- */

static int32_t new_pid(void)
{
    return fork_fails ? -1 : ++last_pid;
}

int kill(pid_t pid, int number)
{
    expect(!running || (pid > 1 && pid != getpid() && number >= 0));
    return 0;
}

/* The processes are not real, so /proc does not have them. */
bool oribi_process_is_below(pid_t pid)
{
    return pid > 1;
}

int unlink(const char *path)
{
    expect(!running || strcmp(path, socket_path) == 0);
    return unlinkat(AT_FDCWD, path, 0);
}

pid_t oribi_process_reap(pid_t pid, bool wait, int *status)
{
    expect(pid == dead_pid && !wait);
    dead_pid = 0;
    *status = dead_status;
    return pid;
}

pid_t oribi_process_ended(void)
{
    return dead_pid;
}

int oribi_start_again(const struct oribi_start *start, char *const *extra, const int *keep, size_t keep_count,
                      pid_t *pid)
{
    for (size_t i = 0; i < keep_count; i++) {
        int fd = fcntl(keep[i], F_DUPFD_CLOEXEC, 0);
        expect(fd >= 0);
        if (child_count < sizeof(child_fds) / sizeof(child_fds[0]))
            child_fds[child_count++] = fd;
        else
            close(fd);
    }
    for (size_t i = 0; extra[i]; i++)
        expect(strchr(extra[i], '=') != NULL);
    *pid = new_pid();
    return *pid < 0 ? -1 : 0;
}

/* --- events --- */

/* Takes steps until the supervisor waits. False when it has ended. */
static bool settle(void)
{
    char title[128];
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        const struct oribi_step *step = oribi_process_take(process);
        switch (step->type) {
        case ORIBI_STEP_WAIT:
            (void)oribi_process_title(process, title, sizeof(title));
            return true;
        case ORIBI_STEP_FORK:
            expect(step->fork == ORIBI_FORK_MOLD);
            (void)oribi_process_forked(process, new_pid());
            break;
        case ORIBI_STEP_HOOK:
            expect(step->hook != NULL);
            break;
        case ORIBI_STEP_EXIT:
            return false;
        default:
            abort(); /* no step of a server's supervisor */
        }
    }
    abort(); /* it never rests */
}

/* Pids worth lying about: those of the processes, groups, all processes, init, this process. */
static int32_t pick_pid(uint8_t choice)
{
    static const int32_t odd[] = {-1, 0, 1, INT32_MIN, -2, INT32_MAX};
    if (choice < 128)
        return FIRST_PID + choice % 32;
    if (choice == 255)
        return getpid();
    return odd[choice % (sizeof(odd) / sizeof(odd[0]))];
}

/* A descriptor that comes along: a listening socket, one end of a command socket, a file. */
static int make_fd(uint8_t choice)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    int fds[2];
    if (choice % 4 == 1) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        expect(bind(fd, (struct sockaddr *)&anywhere, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0);
        return fd;
    }
    if (choice % 4 == 2) {
        expect(oribi_message_pair(fds) == 0);
        close(fds[1]);
        return fds[0];
    }
    return choice % 4 == 3 ? fcntl(null_fd, F_DUPFD_CLOEXEC, 0) : -1;
}

static void record(struct bytes *in)
{
    uint8_t fd_count = next_byte(in) % OURS_FDS_MAX;
    const int fds[] = {null_fd, null_fd, null_fd, null_fd};
    struct bytes part = next_bytes(in, next_byte(in));
    (void)send_raw(oribi__supervisor_process(process->supervisor)->message_fd, part.p, part.n, fds,
                   fd_count); /* a full socket takes no more */
}

static void message(struct bytes *in)
{
    struct oribi_message lie = {.kind = 1 + next_byte(in) % 12,
                                .generation = next_byte(in) % 4,
                                .slot = next_byte(in),
                                .ticket = next_byte(in) % 32,
                                .pid = pick_pid(next_byte(in))};
    uint8_t choice = next_byte(in);
    int fd = make_fd(choice);
    struct bytes text = next_bytes(in, choice / 4);
    oribi_message_set_text(&lie, (const char *)text.p, text.n);
    if (fd >= 0)
        (void)oribi_message_send_fd(oribi__supervisor_process(process->supervisor)->message_fd, &lie, fd);
    else
        (void)oribi_message_send(oribi__supervisor_process(process->supervisor)->message_fd, &lie, 0);
    if (fd >= 0)
        close(fd);
}

static void signal_comes(struct bytes *in)
{
    static const int numbers[] = {SIGTERM, SIGQUIT,  SIGINT, SIGTTIN, SIGTTOU, SIGUSR1,
                                  SIGUSR2, SIGWINCH, SIGHUP, SIGCHLD, 0};
    oribi__signals_send(oribi__supervisor_context(process->supervisor),
                        numbers[next_byte(in) % (sizeof(numbers) / sizeof(numbers[0]))]);
}

static void control_line(struct bytes *in)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int *client = &clients[next_byte(in) % CLIENTS];
    struct bytes part = next_bytes(in, next_byte(in));
    if (*client < 0) {
        *client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        memcpy(where.sun_path, socket_path, sizeof(socket_path));
        (void)connect(*client, (struct sockaddr *)&where, sizeof(where)); /* a supervisor that stops does not listen */
    }
    (void)send(*client, part.p, part.n, MSG_NOSIGNAL);
}

static void control_leaves(struct bytes *in)
{
    int *client = &clients[next_byte(in) % CLIENTS];
    if (*client >= 0)
        close(*client);
    *client = -1;
}

static void death(struct bytes *in)
{
    uint8_t choice = next_byte(in);
    uint8_t status = next_byte(in);
    dead_pid = FIRST_PID + choice % 32;
    dead_status = status < 128 ? status % 64 : (status % 8) << 8; /* wait(2): a signal, or an exit code */
}

static void successor(struct bytes *in)
{
    uint8_t byte = next_byte(in);
    if (child_count > 0 && byte & 1)
        (void)!write(child_fds[child_count - 1], &byte, 1); /* the other end may be closed */
    while (child_count > 0)
        close(child_fds[--child_count]);
}

static void one_event(struct bytes *in)
{
    uint8_t what = next_byte(in);
    fork_fails = what & 128;
    switch (what % EVENTS) {
    case RECORD:
        record(in);
        break;
    case MESSAGE:
        message(in);
        break;
    case SIGNAL:
        signal_comes(in);
        break;
    case CONTROL_LINE:
        control_line(in);
        break;
    case DEATH:
        death(in);
        break;
    case TIME:
        pass_ms((int64_t)next_byte(in) * next_byte(in));
        break;
    case CONTROL_LEAVES:
        control_leaves(in);
        break;
    case SUCCESSOR:
        successor(in);
        break;
    }
}

/* --- one life --- */

static void start(void)
{
    (void)snprintf(socket_path, sizeof(socket_path), "/tmp/oribi-fuzz-%d.sock", (int)getpid());
    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    expect(null_fd >= 0);
}

static void begin(struct oribi_options *options, uint8_t choice)
{
    static char *argv[] = {(char *)"oribi", NULL};
    struct oribi_process_setup setup = {.options = options, .program = "oribi", .argv = argv};
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    oribi_options_init(options);
    expect(oribi_options_set(options, "workers", choice & 1 ? "1" : "3", error) == 0);
    expect(oribi_options_set(options, "control", socket_path, error) == 0);
    if (choice & 2)
        expect(oribi_options_set(options, "drain_delay", "2", error) == 0);
    if (choice & 4)
        expect(oribi_options_set(options, "refork_after", "10", error) == 0);
    if (choice & 8)
        expect(oribi_options_set(options, "age_max", "60", error) == 0);
    expect(oribi_process_create(&setup, &process, error) == 0);
    oribi_log_init(null_fd, ORIBI_LOG_DEBUG);
    last_pid = FIRST_PID - 1;
    dead_pid = 0;
    fork_fails = false;
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = -1;
}

static void end(struct oribi_options *options)
{
    oribi_process_destroy(process);
    oribi_options_deinit(options);
    for (int i = 0; i < CLIENTS; i++)
        if (clients[i] >= 0)
            close(clients[i]);
    while (child_count > 0)
        close(child_fds[--child_count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_options options;
    struct bytes in = {data, size};
    if (!null_fd)
        start();
    if (size < 2 || size > 8192)
        return 0;
    int before = lowest_free_fd();
    int64_t memory_before = memory_in_use;
    running = true;
    begin(&options, next_byte(&in));
    bool lives = settle();
    for (int i = 0; lives && in.n > 0 && i < EVENTS_MAX; i++) {
        one_event(&in);
        lives = settle();
    }
    end(&options);
    running = false;
    expect(memory_in_use == memory_before);
    expect(lowest_free_fd() == before);
    return 0;
}

/* Records and texts between processes of a server, and a supervisor's policy. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_control
/* The control socket's client: what an operator writes behind `ctl`, and what a server answers. Both are the input;
 * words of the command line end at line ends. (What clients send to the server is part of the target `supervision`.)
 *
 * Holds for every input: a command line is refused in one line or becomes a command that the server knows; an answer
 * keeps every byte behind its first word. */
#include "oribi/supervisor/control_client.h"

#include "ours.h"

#include "oribi/command/control_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 8 };

static bool is_known(const char *command_text)
{
    static const char *const known[] = {"status",  "status json", "stacks",   "stacks json", "reload",
                                        "upgrade", "stop",        "stop now", "reopen"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(command_text, known[i]) == 0)
            return true;
    char *end;
    long long interval_ms;
    int sort;
    if (sscanf(command_text, "top %lld %d", &interval_ms, &sort) == 2)
        return interval_ms >= 100 && interval_ms <= 3600 * 1000 && sort >= 0;
    if (strncmp(command_text, "workers ", 8) != 0)
        return false;
    (void)strtol(command_text + 8, &end, 10);
    return end > command_text + 8 && *end == '\0';
}

static void check_line(const char *const *words, size_t count)
{
    struct oribi_options options;
    char line[ORIBI_CONTROL_COMMAND_CAP];
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    oribi_options_init(&options);
    int code = oribi_control_command_parse(&options, count, words, line, error);
    if (code < 0)
        expect(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error) && !strchr(error, '\n'));
    else
        expect(options.help || is_known(line));
    oribi_options_deinit(&options);
}

static void check_answer(const char *text, size_t n)
{
    struct oribi_buf out = {0};
    static const char before[] = "before";
    (void)oribi_buf_try_append(&out, before, sizeof(before) - 1);
    expect(oribi_buf_try_append(&out, text, n) == 0);
    int code = oribi__control_judge(&out, sizeof(before) - 1, "ctl.sock");
    size_t cut = code == 0 ? 3 : code == 1 ? 6 : 0;
    expect(code >= 0 && code <= 2 && out.len == sizeof(before) - 1 + n - cut);
    expect(memcmp(out.p, before, sizeof(before) - 1) == 0);
    expect(memcmp(out.p + sizeof(before) - 1, text + cut, n - cut) == 0);
    oribi_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *words[WORDS_MAX];
    size_t count = 0;
    if (size < 1 || size > 4096)
        return 0;
    check_answer((const char *)data, size);
    char *text = strndup((const char *)data, size);
    char *rest = text;
    while (rest && count < WORDS_MAX)
        words[count++] = strsep(&rest, "\n");
    check_line(words, count);
    free(text);
    return 0;
}
#endif

#ifdef FUZZ_message
/* Records between supervisor, molds and workers, as the receiver sees them. First byte: how many descriptors come
 * along, whether the head is made to fit, whether the receiver asks for the descriptor. The rest is the record.
 *
 * Holds for every input: a record is taken whole or refused, its text ends where it says, at most one descriptor
 * arrives and the others are closed; a mold forks for a slot of the scoreboard or not at all; records of our
 * own arrive as they were sent. */
#include "supervisor/message.c"

#include "ours.h"

#include "supervisor/mold.h"

enum { FDS = 3, FITS = 4, WANTED = 8 };

static void check_received(const struct oribi_message *message, int result, int passed, size_t size, size_t fd_count)
{
    expect(result == 1 || result == ORIBI_EBAD || (result == ORIBI_ECLOSED && size == 0));
    expect(passed < 0 || (result == 1 && fd_count > 0 && (fcntl(passed, F_GETFD) & FD_CLOEXEC)));
    if (result != 1)
        return;
    expect(message->text_len <= ORIBI_MESSAGE_TEXT_MAX && message->text[message->text_len] == '\0');
    expect(message->text_len == size - offsetof(struct oribi_message, text));
}

static void receive(const int ends[2], const void *record, size_t size, const int *fds, size_t fd_count, bool wanted)
{
    int before = lowest_free_fd();
    int passed = -1;
    struct oribi_message *message = malloc(sizeof(*message)); /* so that one byte too many is seen */
    expect(send_raw(ends[1], record, size, fds, fd_count));
    int result = oribi_message_receive(ends[0], message, wanted ? &passed : NULL);
    check_received(message, result, passed, size, fd_count);
    if (passed >= 0)
        close(passed);
    expect(oribi_message_receive(ends[0], message, NULL) == 0);
    free(message);
    expect(lowest_free_fd() == before);
}

/* Sends a mold the record, as its supervisor would. */
static void command(const int ends[2], const void *record, size_t size)
{
    struct oribi_mold mold = {.socket_fd = ends[0], .wake = {-1, -1}, .context = {.board = {.count = 4}}};
    const struct oribi_message *sent = record;
    expect(send_raw(ends[1], record, size, NULL, 0));
    enum oribi_mold_action action = oribi_mold_take(&mold);
    expect(action == ORIBI_MOLD_EXIT || (action == ORIBI_MOLD_SPAWN && sent->kind == ORIBI_MESSAGE_SPAWN));
    expect(action != ORIBI_MOLD_SPAWN || (mold.slot == sent->slot && mold.slot < mold.context.board.count));
    expect(oribi_mold_take(&mold) == ORIBI_MOLD_NONE);
}

static void round_trip(const int ends[2], const char *text, size_t len)
{
    struct oribi_message sent = {.kind = ORIBI_MESSAGE_WORKER_FAILED, .slot = 1, .ticket = 2, .pid = 3};
    struct oribi_message got;
    oribi_message_set_text(&sent, text, len);
    expect(oribi_message_send(ends[1], &sent, 0) == 0 && oribi_message_receive(ends[0], &got, NULL) == 1);
    expect(memcmp(&sent, &got, offsetof(struct oribi_message, text) + got.text_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int ends[2];
    static const int fds[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    struct {
        struct oribi_message message;
        char more[64];
    } record;
    if (!ends[1])
        expect(oribi_message_pair(ends) == 0);
    if (size < 1 || size - 1 > sizeof(record))
        return 0;
    uint8_t flags = data[0];
    size_t n = size - 1;
    memset(&record, 0, sizeof(record));
    memcpy(&record, data + 1, n);
    round_trip(ends, (const char *)data + 1, n);
    if (flags & FITS) {
        size_t head = offsetof(struct oribi_message, text);
        n = n < head ? head : n;
        record.message.magic = MAGIC;
        record.message.text_len = (uint32_t)(n - head);
    }
    receive(ends, &record, n, fds, flags & FDS, flags & WANTED);
    command(ends, &record, n);
    return 0;
}
#endif

#ifdef FUZZ_status
/* Requests to the status listener. First byte: whether there is a token, whether it is a unix socket, whether the
 * server is up, how many workers there are. The rest is what a client has sent.
 *
 * Holds for every input: an answer is one whole HTTP/1.1 answer that closes, with a length that is right; more bytes
 * are wanted only as long as the head may still be completed; with a token nobody without it gets 200, save for the
 * page, which holds no data. */
#include "observe/status_answer.c"

#include "ours.h"

#include "oribi/config/listener.h"

#include <stdlib.h>

enum { TOKEN = 1, UNIX = 2, UP = 4, WORKERS_SHIFT = 3, SLOTS = 64 };

static const char token[] = "fuzz";

static struct oribi__observe *prepare(uint8_t flags, struct oribi_options *options)
{
    static struct oribi_policy_config config = {.workers = 1, .workers_max = SLOTS / 2};
    static struct oribi_listeners listeners;
    static struct oribi__process_context context = {.program = "fuzz", .listeners = &listeners};
    static struct oribi__frontend_set frontends;
    static struct oribi_policy policy;
    static struct oribi_dispatcher dispatcher;
    static int predecessor_fd = -1;
    static struct oribi__observe observe = {.view = {.context = &context,
                                                     .policy = &policy,
                                                     .frontends = &frontends,
                                                     .predecessor_fd = &predecessor_fd,
                                                     .version = "",
                                                     .restart_file = ""}};
    if (!observe.dispatcher) {
        expect(oribi_scoreboard_create(&context.board, SLOTS) == 0);
        expect(oribi_dispatcher_init(&dispatcher) == 0);
        oribi__observe_init(&observe);
        observe.dispatcher = &dispatcher;
    }
    *options = (struct oribi_options){.status_token = flags & TOKEN ? (char *)(uintptr_t)token : NULL};
    oribi_policy_init(&policy, &config, context.board.slots, SLOTS);
    context.options = options;
    observe.state->status.side.is_unix = flags & UNIX;
    policy.up = flags & UP;
    for (uint32_t i = 0; i < (uint32_t)flags >> WORKERS_SHIFT; i++)
        policy.records[i].state = ORIBI_RECORD_SERVING;
    return &observe;
}

static void check(const struct oribi_buf *out, bool has_token, const uint8_t *request, size_t n)
{
    const char *end = memmem(out->p, out->len, "\r\n\r\n", 4);
    const char *length = memmem(out->p, out->len, "\r\nContent-Length: ", 18);
    expect(out->len > 12 && memcmp(out->p, "HTTP/1.1 ", 9) == 0);
    expect(end && length && length < end);
    expect(memmem(out->p, out->len, "\r\nConnection: close\r\n", 21) != NULL);
    size_t body = out->len - (size_t)(end + 4 - out->p);
    expect(body == 0 || body == strtoul(length + 18, NULL, 10)); /* none: HEAD */
    bool is_page = memmem(out->p, out->len, "\r\nContent-Type: text/html", 25) != NULL;
    if (has_token && !is_page && memcmp(out->p + 9, "200", 3) == 0)
        expect(memmem(request, n, token, sizeof(token) - 1) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_options options;
    struct oribi_buf out = {0};
    if (size < 1 || size > ORIBI__STATUS_HEAD_BYTES_MAX + 2)
        return 0;
    struct oribi__observe *observe = prepare(data[0], &options);
    size_t n = size - 1;
    char *request = malloc(n ? n : 1); /* so that one byte too many is seen */
    memcpy(request, data + 1, n);
    uint32_t asked = 0;
    size_t wanted = 0;
    bool answered = oribi__status_answer(observe, request, n, &asked, &wanted, &out);
    expect(answered == (out.len > 0));
    if (answered)
        check(&out, data[0] & TOKEN, data + 1, n);
    else if (!asked && !wanted)
        expect(n <= ORIBI__STATUS_HEAD_BYTES_MAX);
    (void)oribi__metrics_open_wanted(oribi_slice(request, n));
    oribi_buf_deinit(&out);
    free(request);
    return 0;
}
#endif

#ifdef FUZZ_supervision
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
#include "oribi/base/os/os_process.h"
#include "oribi/observe/context.h"
#include "oribi/supervisor/message.h"
#include "supervisor/events.h"
#include "supervisor/start.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>

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
#endif

#ifdef FUZZ_top
/* Snapshots for `ctl top` from a server that may be any program, on a screen of a size that the input chooses: nothing
 * but printable ASCII and the screen's own escape sequences reaches a terminal, in lines that are not too long. */
#include "oribi/base/error.h"
#include "command/top.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static void check(const struct oribi_buf *screen, const struct oribi__top_view *view)
{
    size_t column = 0;
    size_t lines = 1;
    for (size_t i = 0; i < screen->len; i++) {
        unsigned char c = (unsigned char)screen->p[i];
        if (c == '\x1b') {
            assert(view->live && screen->p[i + 1] == '[');
            i += 2 + strspn(screen->p + i + 2, "0123456789");
            assert(strchr("mKJH", screen->p[i]));
        } else if (c == '\n') {
            column = 0;
            lines++;
        } else {
            assert(c == '\r' ? view->live && screen->p[i + 1] == '\n' : c >= 0x20 && c <= 0x7e);
            column += c != '\r';
        }
        assert(view->columns == 0 || column <= view->columns);
    }
    assert(!view->live || view->rows < 2 || lines <= view->rows || view->help);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi__top_snapshot snapshots[2] = {0};
    struct oribi_buf screen = {0};
    if (size < 4)
        return 0;
    struct oribi__top_view view = {.columns = data[0], .rows = data[1], .live = data[2] & 1, .color = data[2] & 2};
    view.help = data[2] & 4;
    view.reverse = data[2] & 8;
    view.sort = (enum oribi__top_sort)(data[3] % ORIBI__TOP_SORTS);
    data += 4;
    size -= 4;
    const uint8_t *second = size ? memchr(data, '\0', size) : NULL; /* two answers, one behind the other */
    size_t first = second ? (size_t)(second - data) : size;
    int code = oribi__top_read(&snapshots[0], (const char *)data, first);
    if (second)
        (void)oribi__top_read(&snapshots[1], (const char *)second + 1, size - first - 1);
    assert(code == 0 || code == ORIBI_EBAD);
    oribi__top_render(&screen, &snapshots[0], second ? &snapshots[1] : NULL, &view);
    *oribi_buf_reserve(&screen, 1) = '\0';
    check(&screen, &view);
    oribi_buf_deinit(&screen);
    oribi__top_deinit(&snapshots[0]);
    oribi__top_deinit(&snapshots[1]);
    return 0;
}
#endif

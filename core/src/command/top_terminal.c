/* `ctl top` at work: asks the server in intervals and shows what it says. It waits for everything at once - the answer,
 * keys, signals, the next look - so that a key or a signal ends it whatever the server does. Reading order: looks, the
 * screen, signals, keys, oribi__top_run at the end.
 *
 * A server that does not answer for a moment may be one whose successor takes over (upgrade): top tries again for
 * LOST_MS before it says that the server has gone. */
#include "command/top.h"
#include "oribi/supervisor/control_client.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/base/os/os_terminal.h"
#include "oribi/base/signals.h"
#include "oribi/supervisor/control.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOST_MS = 2000,
    RETRY_MS = 50,
    ANSWER_BYTES_MAX = 4 * 1024 * 1024, /* ORIBI_SLOTS_MAX workers need a sixth of it */
    CHUNK_BYTES = 512,                  /* what a terminal takes at a time without making us wait */
    CODE_OF_SIGNAL = 128,               /* and its number: the exit code, as shells have it */
};

static const char begin_sequence[] = "\x1b[?1049h\x1b[?25l\x1b[?7l"; /* another screen, no cursor, no line breaks */
static const char end_sequence[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";

struct top {
    const char *path;
    int64_t interval_ms;
    struct oribi__top_view view;
    struct oribi__top_snapshot snapshots[2];
    uint32_t newest;       /* of the two */
    struct oribi_buf text; /* an answer so far, or what is wrong */
    struct oribi_buf screen;
    struct oribi_terminal terminal;
    struct oribi_wake wake;
    _Atomic uint64_t signals; /* that came, as bits; set by the handler */
    int fd;                   /* from which an answer comes; -1: none is awaited */
    int64_t asked_at;         /* of the last look */
    int64_t look_at;          /* of the next */
    int64_t lost_at;          /* since then nothing has answered; 0: the last look was answered */
    bool escaped;             /* the last key was ESC */
    bool in_sequence;         /* of a key that sends ESC [ and more: its last byte is to come */
    bool ended;
    int code;
    char why[128]; /* the last look has failed */
    char note[160];
};

static void finish(struct top *top, int code)
{
    top->ended = true;
    top->lost_at = 0;
    top->code = code;
}

/* --- looks --- */

/* The text says why. It may come from a server that is none of ours. */
static void fail(struct top *top, int code)
{
    int64_t now_ms = oribi_clock_ms();
    (void)snprintf(top->why, sizeof(top->why), "%.*s", (int)top->text.len, top->text.len ? top->text.p : "");
    for (char *p = top->why; *p; p++)
        *p = *p < 0x20 || *p > 0x7e ? '?' : *p;
    for (size_t n = strlen(top->why); n > 0 && top->why[n - 1] == '?'; n--)
        top->why[n - 1] = '\0'; /* the answer's newline */
    top->lost_at = top->lost_at ? top->lost_at : now_ms;
    top->look_at = now_ms + RETRY_MS;
    top->code = code;
    bool knows = top->snapshots[top->newest].pid > 0;
    top->ended = !knows || now_ms - top->lost_at >= LOST_MS;
}

static void ask(struct top *top)
{
    top->text.len = 0;
    top->asked_at = oribi_clock_ms();
    top->look_at = top->asked_at + top->interval_ms;
    top->fd = oribi__control_ask(top->path, "top", true, &top->text);
    if (top->fd < 0)
        fail(top, 2);
}

static void take_answer(struct top *top)
{
    uint32_t next = 1 - top->newest;
    int code = oribi__control_judge(&top->text, 0, top->path);
    oribi_os_close(top->fd);
    top->fd = -1;
    if (code == 0 && oribi__top_read(&top->snapshots[next], top->text.p, top->text.len) < 0) {
        top->text.len = 0;
        code = oribi__control_fail(&top->text, top->path, "the answer is no snapshot of a server") - 1;
    }
    if (code != 0) {
        fail(top, code);
        return;
    }
    top->newest = next;
    top->lost_at = 0;
    top->code = 0;
}

/* True when a look has ended, well or not. */
static bool read_answer(struct top *top)
{
    ssize_t n = 1;
    while (top->fd >= 0 && n > 0 && top->text.len < ANSWER_BYTES_MAX)
        n = oribi__control_read(top->fd, &top->text);
    if (top->fd < 0 || n == ORIBI_AGAIN)
        return false;
    take_answer(top);
    return true;
}

/* --- the screen --- */

/* A terminal that takes nothing (its user has stopped it) is left as soon as a signal says so. */
static void show(struct top *top, const char *p, size_t n)
{
    while (n > 0 && !top->ended) {
        int in = top->wake.read_fd;
        int out = STDOUT_FILENO;
        oribi_process_poll_both(&in, 1, &out, 1, -1);
        ssize_t written = atomic_load(&top->signals) ? 0 : oribi_os_write(out, p, n < CHUNK_BYTES ? n : CHUNK_BYTES);
        if (written <= 0 && written != ORIBI_AGAIN)
            return; /* the next frame is whole again; a terminal that is gone is seen when keys are read */
        p += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
}

static const char *what_is_wrong(struct top *top)
{
    int64_t silent_ms = oribi_clock_ms() - top->asked_at;
    if (top->lost_at)
        (void)snprintf(top->note, sizeof(top->note), "trying again: %s", top->why); /* fits */
    else if (top->fd >= 0 && silent_ms >= 2 * top->interval_ms)
        (void)snprintf(top->note, sizeof(top->note), "no answer for %.1f s; this is what was there before",
                       (double)silent_ms / 1000);
    else
        return NULL;
    return top->note;
}

static void paint(struct top *top)
{
    const struct oribi__top_snapshot *before = &top->snapshots[1 - top->newest];
    if (!top->snapshots[top->newest].pid)
        return;
    oribi_terminal_size(STDOUT_FILENO, &top->view.rows, &top->view.columns);
    top->view.note = what_is_wrong(top);
    top->screen.len = 0;
    oribi__top_render(&top->screen, &top->snapshots[top->newest], before->pid ? before : NULL, &top->view);
    show(top, top->screen.p, top->screen.len);
}

static void begin(struct top *top)
{
    if (oribi_terminal_begin(&top->terminal) < 0)
        finish(top, CODE_OF_SIGNAL + SIGHUP);
    if (oribi_terminal_ready(STDOUT_FILENO))
        (void)oribi_os_write(STDOUT_FILENO, begin_sequence, strlen(begin_sequence)); /* fails where it is gone */
}

static void end(struct top *top)
{
    if (oribi_terminal_ready(STDOUT_FILENO))
        (void)oribi_os_write(STDOUT_FILENO, end_sequence, strlen(end_sequence)); /* the same */
    oribi_terminal_end(&top->terminal);
}

/* --- signals --- */

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

#define BIT(number) ((uint64_t)1 << (number))

static void on_signal(void *self, int number)
{
    struct top *top = self;
    (void)atomic_fetch_or(&top->signals, BIT(number));
    oribi_wake_notify(&top->wake);
}

static void handle_signals(struct top *top)
{
    oribi_signals_choose(numbers, sizeof(numbers) / sizeof(numbers[0]));
    oribi_signals_install(on_signal, top, 0);
}

static void leave_signals(void)
{
    oribi_signals_uninstall();
    oribi_signals_choose(NULL, 0);
}

/* The shell gets its terminal back for so long. */
static void stop(struct top *top)
{
    end(top);
    leave_signals();
    oribi_terminal_stop();
    handle_signals(top);
    begin(top);
}

static void take_signals(struct top *top)
{
    (void)oribi_wake_clear(&top->wake);
    uint64_t came = atomic_exchange(&top->signals, 0);
    static const int ending[] = {SIGTERM, SIGHUP, SIGQUIT};
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]) && !top->ended; i++)
        if (came & BIT(ending[i]))
            finish(top, CODE_OF_SIGNAL + ending[i]);
    if (!top->ended && (came & BIT(SIGINT)))
        finish(top, 0);
    if (top->ended)
        return;
    if (came & BIT(SIGTSTP))
        stop(top);
    else if (came & BIT(SIGCONT)) /* another program has had the terminal */
        begin(top);
    if (came)
        paint(top);
}

/* --- keys --- */

static void take_key(struct top *top, char key)
{
    for (uint32_t i = 0; i < ORIBI__TOP_SORTS; i++)
        if (oribi__top_sort_key(i) == key)
            top->view.sort = i;
    switch (key) {
    case 'q':
        finish(top, 0);
        break;
    case 'i':
        top->view.reverse = !top->view.reverse;
        break;
    case 'h':
    case '?':
        top->view.help = !top->view.help;
        break;
    default:
        break;
    }
}

/* Keys that send several bytes (arrows, for one: ESC [ A) mean nothing here. False for all bytes of such a key. */
static bool is_key(struct top *top, char byte)
{
    bool was_escaped = top->escaped;
    top->escaped = byte == '\x1b';
    if (top->in_sequence)
        top->in_sequence = byte < '@' && !top->escaped;
    else if (was_escaped && (byte == '[' || byte == 'O'))
        top->in_sequence = true;
    else
        return !top->escaped;
    return false;
}

static void take_keys(struct top *top)
{
    char keys[64];
    ssize_t n = oribi_os_read(STDIN_FILENO, keys, sizeof(keys));
    if (n == ORIBI_AGAIN)
        return;
    if (n <= 0) { /* the terminal is closed */
        finish(top, CODE_OF_SIGNAL + SIGHUP);
        return;
    }
    for (ssize_t i = 0; i < n && !top->ended; i++)
        if (is_key(top, keys[i]))
            take_key(top, (char)tolower((unsigned char)keys[i]));
    if (!top->ended)
        paint(top);
}

/* --- all together --- */

static void turn(struct top *top)
{
    int fds[] = {top->wake.read_fd, STDIN_FILENO, top->fd};
    int64_t now_ms = oribi_clock_ms();
    if (top->fd < 0 && now_ms >= top->look_at) {
        ask(top);
        if (top->fd < 0)
            paint(top);
        return;
    }
    int64_t wait_ms = top->fd >= 0 ? top->interval_ms : top->look_at - now_ms;
    oribi_process_poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms);
    take_signals(top);
    if (!top->ended && oribi_terminal_has_input(STDIN_FILENO)) /* else reading would wait */
        take_keys(top);
    bool waits = top->fd >= 0;
    if (!top->ended && (read_answer(top) || (waits && oribi_clock_ms() - now_ms >= top->interval_ms)))
        paint(top);
}

static int run_live(struct top *top, const char *program)
{
    top->terminal.fd = STDIN_FILENO;
    if (oribi_wake_create(&top->wake) < 0)
        return 1;
    ask(top);
    while (top->fd >= 0 && !read_answer(top)) /* nothing is on the screen yet: signals end it as they did */
        oribi_process_poll(&top->fd, 1, -1);
    if (!top->ended && top->code == 0) {
        handle_signals(top);
        begin(top);
        paint(top);
        while (!top->ended)
            turn(top);
        end(top);
        leave_signals();
    }
    oribi_os_close(top->fd);
    oribi_wake_destroy(&top->wake);
    if (top->lost_at)
        (void)dprintf(STDERR_FILENO, "%s: %s\n", program, top->why);
    return top->code;
}

/* Two looks, so that rates are those of this moment. */
static int run_once(struct top *top, const char *program)
{
    for (int i = 0; i < 2; i++) {
        if (i > 0)
            oribi_process_poll(NULL, 0, top->interval_ms);
        top->text.len = 0;
        ask(top);
        while (top->fd >= 0 && !read_answer(top))
            oribi_process_poll(&top->fd, 1, -1);
        if (top->code != 0) {
            (void)dprintf(STDERR_FILENO, "%s: %s\n", program, top->why);
            return top->code;
        }
    }
    oribi__top_render(&top->screen, &top->snapshots[top->newest], &top->snapshots[1 - top->newest], &top->view);
    (void)oribi_os_write_all(STDOUT_FILENO, top->screen.p, top->screen.len); /* the reader may have gone */
    return 0;
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

int oribi__top_run(const char *path, const char *program, int64_t interval_ms, enum oribi__top_sort sort)
{
    const char *kind = getenv("TERM");
    struct top top = {.path = path, .interval_ms = interval_ms, .fd = -1, .view = {.sort = sort}};
    bool live = oribi_terminal_is(STDIN_FILENO) && oribi_terminal_is(STDOUT_FILENO) && is_set("TERM") &&
                strcmp(kind, "dumb") != 0;
    top.view.live = live;
    top.view.color = live && !is_set("NO_COLOR");
    int code = live ? run_live(&top, program) : run_once(&top, program);
    oribi__top_deinit(&top.snapshots[0]);
    oribi__top_deinit(&top.snapshots[1]);
    oribi_buf_deinit(&top.text);
    oribi_buf_deinit(&top.screen);
    return code;
}

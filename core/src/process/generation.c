/* Generations: starting a mold (by the language's fork, or by exec so that new code counts), what a new generation
 * tells about itself, and the successor of an upgrade. A program started by exec finds its ties in its environment:
 *
 *   ORIBI_MOLD     "layout generation socket message life board board_count parent take give": it is to become a mold
 *   ORIBI_UPGRADE  "fd": it is a successor and writes "1" there when it serves
 *   ORIBI_UPGRADE_WHY  "1": … and before that "E", a line and a NUL, when it fails
 *   ORIBI_LISTEN   the listening sockets, for both (inherited.h)
 *
 * A new generation tells its options and listeners before it says that it is ready; they are put into force when it
 * becomes the current one. */
#include "process/supervisor_private.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/config/inherited.h"
#include "process/mold.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROTOCOL = 1,
    /* Builds that lay out shared memory differently must not share it. */
    LAYOUT = PROTOCOL << 28 ^ (int)sizeof(struct oribi_slot) << 14 ^ (int)sizeof(struct oribi_message),
};

/* Those of a config file that the supervisor acts on. */
static const char *const told_options[] = {
    "workers",        "boot_timeout",         "shutdown_timeout",
    "spawn_interval", "err_respawn_interval", "roll_max_unavailable",
    "call_timeout",   "drain_delay",          "memory_max",
    "age_max",        "refork_after",
};

enum { TOLD_OPTIONS = sizeof(told_options) / sizeof(told_options[0]) };

/* --- starting --- */

struct oribi__mold_socket *oribi__mold_socket_of(struct oribi_supervisor *supervisor, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (supervisor->molds[i].fd >= 0 && supervisor->molds[i].pid == pid)
            return &supervisor->molds[i];
    return NULL;
}

void oribi__mold_socket_close(struct oribi_supervisor *supervisor, int32_t pid)
{
    struct oribi__mold_socket *mold = oribi__mold_socket_of(supervisor, pid);
    if (!mold)
        return;
    oribi_os_close(mold->fd);
    *mold = (struct oribi__mold_socket){.fd = -1};
}

/* Takes fd. Places suffice: the decisions keep no more molds than that. */
static void keep_socket(struct oribi_supervisor *supervisor, int32_t pid, int fd)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (supervisor->molds[i].fd >= 0)
            continue;
        supervisor->molds[i] = (struct oribi__mold_socket){.pid = pid, .fd = fd};
        return;
    }
    oribi_os_close(fd); /* the mold takes it for the order to leave */
}

void oribi__mold_started(struct oribi_supervisor *supervisor, pid_t pid)
{
    supervisor->has_started = true;
    supervisor->started = (struct oribi_policy_event){.type = ORIBI_EVENT_MOLD_STARTED,
                                                      .generation = supervisor->next_generation,
                                                      .pid = pid < 0 ? -1 : pid,
                                                      .text = pid < 0 ? oribi_os_error_text() : NULL};
    if (pid >= 0)
        keep_socket(supervisor, pid, supervisor->next_mold_fds[0]);
    else
        oribi_os_close(supervisor->next_mold_fds[0]);
    oribi_os_close(supervisor->next_mold_fds[1]);
    supervisor->next_mold_fds[0] = supervisor->next_mold_fds[1] = -1;
}

/* ORIBI_LISTEN, and the descriptors that it names. It speaks for the variables of managers too, which are therefore
 * emptied below. */
static size_t collect_listeners(struct oribi_supervisor *supervisor, char *listen, size_t cap, int *keep)
{
    int n = snprintf(listen, cap, "ORIBI_LISTEN=");
    (void)oribi_inherited_format(supervisor->ties.listeners, listen + n, cap - (size_t)n);
    size_t count = 0;
    for (uint32_t i = 0; i < supervisor->ties.listeners->count; i++)
        keep[count++] = supervisor->ties.listeners->items[i].fd;
    return count;
}

static int exec_mold(struct oribi_supervisor *supervisor, pid_t *pid)
{
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char mold[160];
    char handoff[24];
    int keep[ORIBI_LISTENERS_MAX + 6];
    size_t count = collect_listeners(supervisor, listen, sizeof(listen), keep);
    oribi_handoff_export(&supervisor->ties.handoff, handoff, sizeof(handoff));
    (void)snprintf(mold, sizeof(mold), "ORIBI_MOLD=%u %u %d %d %d %d %u %ld %s", (unsigned)LAYOUT,
                   supervisor->next_generation, supervisor->next_mold_fds[1], supervisor->ties.message_fd,
                   supervisor->ties.life_fd,
                   /* ten numbers fit */
                   supervisor->ties.board.fd, supervisor->ties.board.count, (long)supervisor->pid, handoff);
    keep[count++] = supervisor->next_mold_fds[1];
    keep[count++] = supervisor->ties.message_fd;
    keep[count++] = supervisor->ties.life_fd;
    keep[count++] = supervisor->ties.board.fd;
    keep[count++] = supervisor->ties.handoff.take_fd;
    keep[count++] = supervisor->ties.handoff.give_fd;
    char *extra[] = {mold, listen, (char *)"LISTEN_FDS=", (char *)"LISTEN_PID=", (char *)"ORIBI_UPGRADE=", NULL};
    oribi__children_ours(true);
    int code = oribi_start_again(&supervisor->start, extra, keep, count, pid);
    oribi__children_ours(false);
    return code;
}

bool oribi__start_mold(struct oribi_supervisor *supervisor, uint32_t generation, bool fresh)
{
    pid_t pid = -1;
    supervisor->next_generation = generation;
    if (!fresh && supervisor->ties.prefork) { /* nothing is to be forked or loaded: we are that mold */
        supervisor->has_started = true;
        supervisor->started = (struct oribi_policy_event){
            .type = ORIBI_EVENT_MOLD_STARTED, .generation = generation, .pid = supervisor->pid};
        return false;
    }
    if (oribi_message_pair(supervisor->next_mold_fds) < 0) {
        supervisor->next_mold_fds[0] = supervisor->next_mold_fds[1] = -1;
        oribi__mold_started(supervisor, -1);
        return false;
    }
    if (!fresh)
        return true;
    oribi__mold_started(supervisor, exec_mold(supervisor, &pid) < 0 ? -1 : pid);
    return false;
}

/* --- what a new generation tells --- */

/* Listeners that only the generation in question has brought along; it comes to nothing. */
static void drop_adopted(struct oribi_supervisor *supervisor)
{
    struct oribi_listeners *listeners = supervisor->ties.listeners;
    while (listeners->count > supervisor->adopted_from)
        oribi_listener_close(&listeners->items[--listeners->count], true);
}

static void begin_telling(struct oribi_supervisor *supervisor, int32_t pid)
{
    if (supervisor->announcing_mold == pid)
        return;
    oribi__generation_failed(supervisor); /* what an earlier one told is void */
    supervisor->announcing_mold = pid;
}

void oribi__generation_failed(struct oribi_supervisor *supervisor)
{
    drop_adopted(supervisor);
    supervisor->announcing_mold = 0;
    supervisor->announced_error[0] = '\0';
    supervisor->has_config = false;
    supervisor->named_count = 0;
    supervisor->adopted_from = supervisor->ties.listeners->count;
}

static bool is_told(const char *name)
{
    for (size_t i = 0; i < TOLD_OPTIONS; i++)
        if (strcmp(name, told_options[i]) == 0)
            return true;
    return false;
}

/* One line "name=value". Other names are not ours to set: their texts are borrowed here. */
static void told_option(struct oribi_options *options, const char *line, size_t n)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char pair[256];
    (void)snprintf(pair, sizeof(pair), "%.*s", (int)n, line); /* our own options are short */
    char *value = strchr(pair, '=');
    if (!value)
        return;
    *value++ = '\0';
    if (is_told(pair) && oribi_options_set(options, pair, value, error) < 0)
        oribi_log(ORIBI_LOG_WARN, "reload: %s", error);
}

/* They are numbers all of them, so that this takes no memory: a server without any goes on with the generation it
 * has. */
static void told_options_text(struct oribi_supervisor *supervisor, const char *text)
{
    struct oribi_options options = *supervisor->ties.options;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        told_option(&options, line, n);
        line += n + (line[n] == '\n');
    }
    oribi__supervisor_config(&options, supervisor->policy.config.workers_max, &supervisor->config);
    supervisor->config.patient = supervisor->ties.prefork;
    supervisor->config.no_reopen = supervisor->ties.usr1_foreign;
    supervisor->has_config = true;
}

static void told_listener(struct oribi_supervisor *supervisor, const char *spec, int passed)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (supervisor->named_count < ORIBI_LISTENERS_MAX)
        (void)snprintf(supervisor->named[supervisor->named_count++], ORIBI_ADDRESS_TEXT_CAP, "%.*s",
                       ORIBI_ADDRESS_TEXT_CAP - 1, spec);
    if (passed >= 0 && oribi_listeners_adopt(supervisor->ties.listeners, passed, ORIBI_ORIGIN_OWN, spec, error) < 0)
        (void)snprintf(supervisor->announced_error, sizeof(supervisor->announced_error), "%s", error);
}

void oribi__generation_announced(struct oribi_supervisor *supervisor, const struct oribi_message *message, int passed)
{
    if (!supervisor->policy.next_generation || message->generation != supervisor->policy.next_generation) {
        oribi_os_close(passed);
        return; /* the current one's mold was replaced: what is in force stays in force */
    }
    begin_telling(supervisor, message->pid);
    if (message->kind == ORIBI_MESSAGE_MOLD_OPTIONS) {
        told_options_text(supervisor, message->text);
        oribi_os_close(passed);
    } else {
        told_listener(supervisor, message->text, passed);
    }
}

void oribi__generation_ready(struct oribi_supervisor *supervisor, struct oribi_policy_event *event)
{
    if (supervisor->announcing_mold != event->pid)
        return;
    if (supervisor->announced_error[0]) {
        event->type = ORIBI_EVENT_MOLD_FAILED;
        event->text = supervisor->announced_error;
        oribi__mold_socket_close(supervisor, event->pid); /* it believes itself to be wanted, and is to leave */
    } else if (supervisor->has_config) {
        event->config = &supervisor->config;
    }
}

static bool is_named(const struct oribi_supervisor *supervisor, const struct oribi_listener *item)
{
    for (uint32_t i = 0; i < supervisor->named_count; i++)
        if (strcmp(supervisor->named[i], item->spec) == 0)
            return true;
    return false;
}

/* Addresses that the new configuration does not have any more are closed here; workers of the old generation serve
 * theirs until they go. */
void oribi__generation_committed(struct oribi_supervisor *supervisor)
{
    struct oribi_listeners *listeners = supervisor->ties.listeners;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (supervisor->named_count > 0 && !is_named(supervisor, item)) {
            oribi_log(ORIBI_LOG_INFO, "no longer listening on %s", item->text);
            oribi_listener_close(item, true);
            continue;
        }
        if (i >= supervisor->adopted_from)
            oribi_log(ORIBI_LOG_INFO, "listening on %s as well", item->text);
        listeners->items[kept++] = *item;
    }
    listeners->count = kept;
    supervisor->adopted_from = kept;
    oribi__generation_failed(supervisor); /* everything told is in force: forget it */
}

bool oribi__mold_promoted(struct oribi_supervisor *supervisor, const struct oribi_message *message, int passed)
{
    if (passed < 0)
        return false;
    keep_socket(supervisor, message->pid, passed);
    return true;
}

/* --- in a mold that was started by exec --- */

bool oribi_mold_inherited(void)
{
    const char *text = getenv("ORIBI_MOLD");
    return text && *text;
}

int oribi__handed_down_read(struct oribi__handed_down *from, char *error)
{
    unsigned layout = 0;
    long parent = 0;
    const char *text = getenv("ORIBI_MOLD");
    char handoff[24] = "";
    int n = sscanf(text ? text : "", "%u %u %d %d %d %d %u %ld %23s", &layout, &from->generation, &from->socket_fd,
                   &from->message_fd, &from->life_fd, &from->board_fd, &from->board_count, &parent, handoff);
    (void)unsetenv("ORIBI_MOLD"); /* fails for names with `=` only */
    from->parent = (pid_t)parent;
    if (n >= 1 && layout != (unsigned)LAYOUT) {
        (void)snprintf(
            error, ORIBI_ERROR_TEXT_CAP,
            "the running server is of another version: an upgrade (USR2) replaces it, a reload (HUP) cannot");
        return ORIBI_EINVAL;
    }
    const int fds[] = {from->socket_fd, from->message_fd, from->life_fd, from->board_fd};
    for (size_t i = 0; n == 9 && i < sizeof(fds) / sizeof(fds[0]); i++)
        if (oribi_os_set_cloexec(fds[i], true) < 0)
            n = 0;
    if (n == 9 && oribi_handoff_import(&from->handoff, handoff) < 0)
        n = 0;
    if (n == 9 && from->board_count > 0 && from->board_count <= ORIBI_SLOTS_MAX)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "ORIBI_MOLD cannot be read: \"%.80s\"", text ? text : "");
    return ORIBI_EINVAL;
}

static void tell(struct oribi__ties *ties, struct oribi_message *message, int passed)
{
    int code = passed >= 0 ? oribi_message_send_fd(ties->message_fd, message, passed)
                           : oribi_message_send(ties->message_fd, message, 1);
    if (code < 0)
        oribi_log(ORIBI_LOG_WARN, "the supervisor does not listen: %s", oribi_os_error_text());
}

void oribi__tell_generation(struct oribi__ties *ties, uint32_t generation)
{
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_OPTIONS, .generation = generation, .pid = getpid()};
    char text[2048];
    size_t len = 0;
    for (size_t i = 0; i < TOLD_OPTIONS && len < sizeof(text); i++) {
        char value[128];
        const struct oribi_option *option = oribi_options_find(told_options[i]);
        (void)oribi_options_get(ties->options, option, value, sizeof(value)); /* numbers fit */
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s=%s\n", told_options[i], value);
    }
    oribi_message_set_text(&message, text, len < sizeof(text) ? len : sizeof(text) - 1);
    tell(ties, &message, -1);
    message.kind = ORIBI_MESSAGE_MOLD_LISTENER;
    for (uint32_t i = 0; i < ties->listeners->count; i++) {
        const struct oribi_listener *item = &ties->listeners->items[i];
        oribi_message_set_text(&message, item->spec, strlen(item->spec));
        tell(ties, &message, item->fresh ? item->fd : -1);
    }
}

/* --- upgrade --- */

static void step_aside(struct oribi_supervisor *supervisor)
{
    char path[4096];
    if (supervisor->pid_file.fd < 0)
        return;
    (void)snprintf(path, sizeof(path), "%s.old", supervisor->pid_path); /* a path of the file system fits */
    if (oribi_pid_file_rename(&supervisor->pid_file, path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed: %s", oribi_os_error_text());
}

void oribi__start_successor(struct oribi_supervisor *supervisor)
{
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char upgrade[48];
    int keep[ORIBI_LISTENERS_MAX + 1];
    int fds[2];
    pid_t pid = -1;
    size_t count = collect_listeners(supervisor, listen, sizeof(listen), keep);
    supervisor->has_started = true;
    supervisor->started = (struct oribi_policy_event){.type = ORIBI_EVENT_UPGRADE_STARTED, .pid = -1};
    if (oribi_os_lift_pair(pipe2(fds, O_CLOEXEC | O_NONBLOCK), fds) < 0) {
        (void)oribi_os_fail();
        supervisor->started.text = oribi_os_error_text();
        return;
    }
    (void)snprintf(upgrade, sizeof(upgrade), "ORIBI_UPGRADE=%d", fds[1]); /* fits */
    char *extra[] = {upgrade,
                     listen,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"WATCHDOG_PID=", /* it is the one that is watched from now on */
                     (char *)"ORIBI_MOLD=",
                     (char *)"ORIBI_UPGRADE_WHY=1",
                     NULL};
    keep[count++] = fds[1];
    supervisor->successor_why_len = 0;
    supervisor->successor_tells = false;
    step_aside(supervisor);
    oribi__children_ours(true);
    int code = oribi_start_again(&supervisor->start, extra, keep, count, &pid);
    oribi__children_ours(false);
    oribi_os_close(fds[1]);
    if (code < 0) {
        supervisor->started.text = oribi_os_error_text();
        oribi_os_close(fds[0]);
        return;
    }
    supervisor->started.pid = pid;
    supervisor->successor_fd = fds[0];
}

/* A byte of what the successor says of its failure; the first failure is the one that is told on. */
static void hear_why(struct oribi_supervisor *supervisor, char byte)
{
    if (!byte)
        supervisor->successor_tells = false;
    else if (supervisor->successor_why_len + 1 < sizeof(supervisor->successor_why))
        supervisor->successor_why[supervisor->successor_why_len++] = byte;
    supervisor->successor_why[supervisor->successor_why_len] = '\0';
}

/* Its death closes the pipe as well, and is told by waitpid(2). */
bool oribi__successor_ready(struct oribi_supervisor *supervisor)
{
    char byte;
    if (supervisor->successor_fd < 0)
        return false;
    ssize_t n;
    while ((n = oribi_os_read(supervisor->successor_fd, &byte, 1)) == 1) {
        if (supervisor->successor_tells)
            hear_why(supervisor, byte);
        else if (byte == 'E')
            supervisor->successor_tells = true;
        else
            break;
    }
    if (n == ORIBI_AGAIN)
        return false;
    oribi_os_close(supervisor->successor_fd);
    supervisor->successor_fd = -1;
    return n == 1;
}

/* In a successor: one write, so that what is told is whole. */
static void tell_predecessor(int fd, const char *text)
{
    char line[sizeof(((struct oribi_supervisor *)0)->successor_why) + 2];
    int n = snprintf(line, sizeof(line), "E%.*s", (int)strcspn(text, "\n"), text); /* cut when longer: a hint */
    if (n > 0)
        (void)oribi_os_write(fd, line, (size_t)n < sizeof(line) ? (size_t)n + 1 : sizeof(line)); /* it may be gone */
}

void oribi__successor_tell(struct oribi_supervisor *supervisor, const char *text)
{
    if (supervisor->upgrade_fd >= 0 && supervisor->upgrade_why)
        tell_predecessor(supervisor->upgrade_fd, text);
}

/* In the environment, as long as no host or mold of ours has taken it over. */
static void tell_mold_failed(const char *text)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi__handed_down from;
    if (oribi__handed_down_read(&from, error) < 0)
        return; /* whoever started us sees our end */
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_FAILED, .generation = from.generation, .pid = getpid()};
    oribi_message_set_text(&message, text, strlen(text));
    (void)oribi_message_send(from.message_fd, &message, 1); /* likewise */
}

void oribi_start_failed(const char *text)
{
    const char *fd = getenv("ORIBI_UPGRADE");
    const char *why = getenv("ORIBI_UPGRADE_WHY");
    if (oribi_mold_inherited())
        tell_mold_failed(text);
    else if (fd && *fd && why && *why)
        tell_predecessor((int)strtol(fd, NULL, 10), text);
}

void oribi__successor_failed(struct oribi_supervisor *supervisor)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_os_close(supervisor->successor_fd);
    supervisor->successor_fd = -1;
    if (supervisor->pid_file.fd >= 0 && oribi_pid_file_rename(&supervisor->pid_file, supervisor->pid_path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed back: %s", oribi_os_error_text());
    if (supervisor->ties.options->control && oribi__control_open(supervisor, true, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s", error);
}

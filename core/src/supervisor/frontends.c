/* Hearing and ending doors, and starting them again. */
#include "supervisor/frontend_passwords.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ENDED_LOOK_MS = 5,          /* a command's output is closed just before its end */
    KILLED_MS = 1000,           /* until a door that was killed has ended */
    SITE_MS = 2 * 1000,         /* until it answers by what a reload says */
    BACKOFF_MS = 100,           /* doubled with each failure … */
    BACKOFF_MS_MAX = 10 * 1000, /* … up to this */
    CPUS_PER_DOOR = 4,
    HEARD_MAX = 16, /* messages of a door at a time: it has one or two to say */
};

/* --- what it is started with --- */

void oribi__doors_init(struct oribi__doors *doors)
{
    doors->tickets_fd = -1;
    doors->slots_fd = -1;
    doors->starting = ORIBI_DOORS_MAX;
    for (uint32_t i = 0; i < ORIBI_DOORS_MAX; i++)
        doors->items[i].control_fd = -1;
}

/* --- hearing --- */

/* A door answers in the order in which it was told: a late answer to an earlier one is none to the last. */
static bool is_last(uint32_t *owed)
{
    return *owed > 0 && --*owed == 0;
}

/* One message. False: there is none. */
static bool hear(struct oribi_supervisor *supervisor, struct oribi__door *door)
{
    struct oribi__doors *doors = &supervisor->doors;
    char line[ORIBI_ERROR_TEXT_CAP + 2];
    if (door->control_fd < 0)
        return false;
    ssize_t n = oribi_os_read(door->control_fd, line, sizeof(line) - 1);
    if (n <= 0) {
        if (n != ORIBI_AGAIN) {
            oribi__close(&door->control_fd); /* its death is told by waitpid(2) */
            door->owed = door->sites_owed = 0;
        }
        return false;
    }
    line[n] = '\0';
    switch (line[0]) {
    case ORIBI_DOOR_SAYS_READY:
        door->ready = true;
        door->failures = 0;
        if (door->files.len > 0)
            oribi__door_files_move(&doors->kept, &door->files);
        break;
    case ORIBI_DOOR_SAYS_TAKEN:
        if (!is_last(&door->owed))
            break;
        doors->taken++;
        (void)snprintf(doors->warning, sizeof(doors->warning), "%.*s", (int)sizeof(doors->warning) - 1, line + 1);
        break;
    case ORIBI_DOOR_SAYS_SITE:
        (void)is_last(&door->sites_owed);
        break;
    case ORIBI_DOOR_SAYS_REFUSED:
        if (!is_last(&door->owed))
            break;
        (void)snprintf(doors->refusal, sizeof(doors->refusal), "%.*s", (int)sizeof(doors->refusal) - 1, line + 1);
        break;
    case ORIBI_DOOR_SAYS_FAILED:
        (void)snprintf(doors->error, sizeof(doors->error), "%.*s", (int)sizeof(doors->error) - 1, line + 1);
        break;
    default:
        break;
    }
    return true;
}

/* Messages that are there. A door that writes without an end, which none of ours does, holds up nobody. */
static void hear_some(struct oribi_supervisor *supervisor, struct oribi__door *door)
{
    for (int i = 0; i < HEARD_MAX && hear(supervisor, door); i++)
        continue;
}

static uint32_t count_ready(const struct oribi__doors *doors)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < doors->count; i++)
        ready += doors->items[i].ready;
    return ready;
}

const char *oribi__door_state(const struct oribi__door *door)
{
    struct oribi_process_look look;
    if (!door->ready)
        return "starting";
    oribi_process_look(door->pid, &look);
    return look.stopped ? "stopped" : "serving";
}

uint32_t oribi__doors_serving(const struct oribi__doors *doors)
{
    uint32_t serving = 0;
    for (uint32_t i = 0; i < doors->count; i++)
        serving += strcmp(oribi__door_state(&doors->items[i]), "serving") == 0;
    return serving;
}

bool oribi__doors_missing(const struct oribi__doors *doors)
{
    return doors->count > 0 && oribi__doors_serving(doors) == 0;
}

static bool all_open(const struct oribi__doors *doors)
{
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].control_fd < 0)
            return false;
    return true;
}

/* --- the begin --- */

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

/* The reason begins with "user", the option of workers; this one is door_user. */
int oribi__doors_check_user(const struct oribi_options *options, char *error)
{
    char reason[ORIBI_ERROR_TEXT_CAP];
    int code = options->door_user ? oribi_process_check_user(options->door_user, NULL, reason) : 0;
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "door_%.*s", ORIBI_ERROR_TEXT_CAP - 6, reason);
    return code;
}

int oribi__doors_begin(struct oribi_supervisor *supervisor, char *error)
{
    struct oribi__doors *doors = &supervisor->doors;
    const struct oribi_options *options = supervisor->ties.options;
    oribi__doors_warn_of_unused(options, supervisor->ties.listeners);
    if (!oribi__doors_wanted(supervisor->ties.listeners) || supervisor->ties.prefork)
        return 0;
    if (!oribi__door_program(doors->program, sizeof(doors->program)))
        return refuse(error, "tls:// and ?door=on need " ORIBI__DOOR_NEEDS);
    oribi__doors_make_tickets(doors);
    oribi__doors_make_slots(doors);
    uint32_t cpus = oribi_os_cpu_count();
    doors->count = options->doors ? options->doors : (cpus + CPUS_PER_DOOR - 1) / CPUS_PER_DOOR;
    if (doors->count > ORIBI_DOORS_MAX)
        doors->count = ORIBI_DOORS_MAX;
    int code = oribi__door_text_site(options, &doors->site);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    doors->beginning = code == 0;
    if (code < 0)
        oribi__doors_close(supervisor, false);
    return code;
}

/* One reads certificates at a time. */
static bool may_start(const struct oribi__doors *doors, uint32_t i)
{
    return !doors->of_start || (doors->starting == i && oribi__passwords_turn(doors->of_start));
}

static int begin_turn(struct oribi_supervisor *supervisor, char *error)
{
    struct oribi__doors *doors = &supervisor->doors;
    while (doors->begun < doors->count) {
        if (!may_start(doors, doors->begun))
            return ORIBI_AGAIN;
        int code = oribi__door_start(supervisor, doors->begun, error);
        if (code < 0)
            return code;
        doors->begun++;
    }
    for (uint32_t i = 0; i < doors->count; i++)
        hear_some(supervisor, &doors->items[i]);
    if (doors->error[0])
        return refuse(error, doors->error);
    if (!all_open(doors))
        return refuse(error, "oribi-door has ended at its start");
    if (count_ready(doors) == doors->count)
        return 0;
    return oribi_clock_ms() < doors->items[0].ready_by ? ORIBI_AGAIN : refuse(error, "oribi-door is not ready in time");
}

int oribi__doors_begin_turn(struct oribi_supervisor *supervisor, char *error)
{
    int code = begin_turn(supervisor, error);
    if (code == ORIBI_AGAIN)
        return code;
    supervisor->doors.beginning = false;
    if (code < 0)
        oribi__doors_close(supervisor, false);
    return code;
}

/* --- what is answered without the application --- */

/* A reload has ended when what it has changed is seen. A door whose disk stands still takes the site later. */
static bool sites_wait(const struct oribi__doors *doors)
{
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].ready && doors->items[i].sites_owed)
            return true;
    return false;
}

bool oribi__doors_settle(const struct oribi_supervisor *supervisor)
{
    const struct oribi__doors *doors = &supervisor->doors;
    return doors->renewing != ORIBI__RENEWAL_NONE ||
           (doors->sites_until && oribi_clock_ms() < doors->sites_until && sites_wait(doors));
}

void oribi__doors_site(struct oribi_supervisor *supervisor, const struct oribi_buf *site)
{
    struct oribi__doors *doors = &supervisor->doors;
    struct oribi_buf *own = &doors->site;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (doors->count == 0)
        return;
    own->len = 0;
    int fd = ORIBI_ENOMEM;
    if (oribi_buf_try_append(own, site->p, site->len) == 0)
        fd = oribi__door_text_fd(site, error);
    if (fd < 0) {
        oribi_log(ORIBI_LOG_ERROR, "out of memory: doors have the files and pages of the generation before");
        return;
    }
    for (uint32_t i = 0; i < doors->count; i++) {
        struct oribi__door *door = &doors->items[i];
        if (door->control_fd < 0)
            continue; /* it gets the text when it starts */
        if (oribi__door_text_send(door->control_fd, ORIBI_DOOR_TOLD_SITE, fd) == 0)
            door->sites_owed++;
        else
            oribi_log(ORIBI_LOG_ERROR, "door %u takes no messages: it has the files and pages of the generation before",
                      i);
    }
    oribi_os_close(fd);
    doors->sites_until = oribi_clock_ms() + SITE_MS;
}

/* --- life --- */

static void plan_start(struct oribi__door *door, int64_t now_ms)
{
    int64_t wait_ms = BACKOFF_MS;
    for (uint32_t i = 0; i < door->failures && wait_ms < BACKOFF_MS_MAX; i++)
        wait_ms *= 2;
    door->failures++;
    door->start_at = now_ms + (wait_ms < BACKOFF_MS_MAX ? wait_ms : BACKOFF_MS_MAX);
}

static bool command_ended(struct oribi__passwords *passwords, pid_t pid, int status)
{
    return passwords && passwords->runs && oribi_os_command_ended(&passwords->command, pid, status);
}

bool oribi__doors_ended(struct oribi_supervisor *supervisor, pid_t pid, int status)
{
    struct oribi__doors *doors = &supervisor->doors;
    if (command_ended(doors->passwords, pid, status) || command_ended(doors->of_start, pid, status))
        return true;
    for (uint32_t i = 0; i < doors->count; i++) {
        struct oribi__door *door = &doors->items[i];
        if (door->pid != pid)
            continue;
        hear_some(supervisor, door);
        oribi__close(&door->control_fd);
        door->pid = 0;
        door->owed = door->sites_owed = 0;
        if (!door->ready && door->files.len > 0) /* it was to have new ones */
            (void)snprintf(door->refused, sizeof(door->refused), "%.*s", (int)sizeof(door->refused) - 1, doors->error);
        oribi__door_files_free(&door->files, false);
        door->ready = false;
        if (doors->slots)
            oribi_door_slot_ended(&doors->slots[i]);
        if (doors->ending || doors->beginning)
            return true;
        supervisor->totals.door_exits++;
        oribi_log(ORIBI_LOG_ERROR, "door %u (pid %d) ended: %s %d%s%s", i, (int)pid,
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), doors->error[0] ? ": " : "",
                  doors->error);
        doors->error[0] = '\0';
        plan_start(door, oribi_clock_ms());
        return true;
    }
    return false;
}

static void look_at(struct oribi_supervisor *supervisor, uint32_t i, int64_t now_ms)
{
    struct oribi__doors *doors = &supervisor->doors;
    struct oribi__door *door = &doors->items[i];
    char error[ORIBI_ERROR_TEXT_CAP];
    bool was_ready = door->ready;
    hear_some(supervisor, door);
    if (!was_ready && door->ready)
        oribi_log(ORIBI_LOG_INFO, "door %u (pid %d) serves again", i, (int)door->pid);
    if (door->pid && !door->ready && now_ms >= door->ready_by && !doors->ending) {
        oribi_log(ORIBI_LOG_ERROR, "door %u (pid %d) is not ready in time: killed", i, (int)door->pid);
        door->ready_by = INT64_MAX;
        (void)kill(door->pid, SIGKILL);
    }
    if (door->pid || doors->ending || !door->start_at || now_ms < door->start_at || !may_start(doors, i))
        return;
    int code = oribi__door_start(supervisor, i, error);
    if (code < 0 && code != ORIBI_AGAIN) {
        oribi_log(ORIBI_LOG_ERROR, "door %u cannot be started: %s", i, error);
        plan_start(door, now_ms);
    }
}

void oribi__doors_turn(struct oribi_supervisor *supervisor)
{
    struct oribi__doors *doors = &supervisor->doors;
    int64_t now_ms = oribi_clock_ms();
    for (uint32_t i = 0; i < doors->count; i++)
        look_at(supervisor, i, now_ms);
    oribi__doors_renewal_turn(supervisor, now_ms);
    if (now_ms >= doors->sites_until)
        doors->sites_until = 0;
    oribi__doors_note_sole(doors, supervisor->upgrade.predecessor_fd < 0 && !supervisor->policy.upgrade_pid);
    if (doors->tickets && now_ms >= doors->tickets_at)
        oribi__doors_turn_tickets(doors, now_ms);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t passwords_deadline(const struct oribi__passwords *passwords)
{
    if (!passwords || !passwords->runs)
        return INT64_MAX;
    int64_t look_at = passwords->command.output_fd < 0 ? oribi_clock_ms() + ENDED_LOOK_MS : INT64_MAX;
    return earlier(look_at, passwords->command.until_ms);
}

int64_t oribi__doors_deadline(const struct oribi_supervisor *supervisor)
{
    const struct oribi__doors *doors = &supervisor->doors;
    int64_t at = doors->tickets ? doors->tickets_at : INT64_MAX;
    at = earlier(at, passwords_deadline(doors->passwords));
    at = earlier(at, passwords_deadline(doors->of_start));
    if (doors->renewing == ORIBI__RENEWAL_WAITS)
        at = earlier(at, doors->renewal_until);
    if (doors->sites_until && sites_wait(doors))
        at = earlier(at, doors->sites_until);
    for (uint32_t i = 0; i < doors->count; i++) {
        const struct oribi__door *door = &doors->items[i];
        if (doors->of_start && !door->pid)
            continue; /* the reading of certificates tells when */
        int64_t own = door->pid == 0 && door->start_at ? door->start_at : door->ready ? INT64_MAX : door->ready_by;
        if (!doors->ending && own < at)
            at = own;
    }
    return at;
}

size_t oribi__doors_fds(const struct oribi_supervisor *supervisor, int *fds)
{
    const struct oribi__doors *doors = &supervisor->doors;
    for (uint32_t i = 0; i < doors->count; i++)
        fds[i] = doors->items[i].control_fd;
    fds[doors->count] = doors->passwords && doors->passwords->runs ? doors->passwords->command.output_fd : -1;
    fds[doors->count + 1] = doors->of_start && doors->of_start->runs ? doors->of_start->command.output_fd : -1;
    return doors->count + 2;
}

/* --- the end --- */

static void tell_all(struct oribi__doors *doors, char kind)
{
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].control_fd >= 0) /* a door that takes no message is killed in time */
            (void)send(doors->items[i].control_fd, &kind, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void oribi__doors_reopen(struct oribi_supervisor *supervisor)
{
    struct oribi__doors *doors = &supervisor->doors;
    int access_fd = oribi__doors_access_log_fd(supervisor);
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].control_fd >= 0 &&
            (oribi__door_text_send(doors->items[i].control_fd, ORIBI_DOOR_TOLD_REOPEN, oribi_log_fd()) < 0 ||
             (access_fd >= 0 &&
              oribi__door_text_send(doors->items[i].control_fd, ORIBI_DOOR_TOLD_ACCESS_LOG, access_fd) < 0)))
            oribi_log(ORIBI_LOG_WARN, "door %u goes on with the old log: %s", i, oribi_os_error_text());
}

void oribi__doors_end(struct oribi_supervisor *supervisor, bool handed_over)
{
    struct oribi__doors *doors = &supervisor->doors;
    if (doors->ending || doors->count == 0)
        return;
    doors->ending = true;
    doors->renewing = ORIBI__RENEWAL_NONE;
    oribi__doors_end_reading(&doors->passwords, false);
    oribi__doors_end_reading(&doors->of_start, false);
    bool shared = handed_over || supervisor->upgrade.predecessor_fd >= 0;
    tell_all(doors, shared ? ORIBI_DOOR_TOLD_DRAIN : ORIBI_DOOR_TOLD_STOP);
}

void oribi__doors_give_up(struct oribi_supervisor *supervisor)
{
    tell_all(&supervisor->doors, ORIBI_DOOR_TOLD_GIVE_UP);
}

bool oribi__doors_left(const struct oribi_supervisor *supervisor)
{
    const struct oribi__doors *doors = &supervisor->doors;
    for (uint32_t i = 0; i < doors->count; i++)
        if (doors->items[i].pid)
            return true;
    return false;
}

void oribi__doors_close(struct oribi_supervisor *supervisor, bool in_child)
{
    struct oribi__doors *doors = &supervisor->doors;
    for (uint32_t i = 0; i < doors->count; i++) {
        struct oribi__door *door = &doors->items[i];
        oribi__close(&door->control_fd);
        if (door->pid && !in_child) {
            (void)kill(door->pid, SIGKILL); /* what has begun had its time */
            (void)oribi_process_reap_within(door->pid, KILLED_MS);
        }
        door->pid = 0;
        door->ready = false;
        oribi__door_files_free(&door->files, in_child);
    }
    oribi__doors_end_reading(&doors->passwords, in_child);
    oribi__doors_end_reading(&doors->of_start, in_child);
    oribi__door_files_free(&doors->renewed, in_child);
    oribi__door_files_free(&doors->kept, in_child);
    oribi__close(&doors->tickets_fd);
    if (doors->tickets)
        (void)munmap(doors->tickets, sizeof(*doors->tickets)); /* ours: cannot fail */
    doors->tickets = NULL;
    oribi__close(&doors->slots_fd);
    if (doors->slots)
        (void)munmap(doors->slots, ORIBI_DOORS_MAX * sizeof(*doors->slots)); /* as the other */
    doors->slots = NULL;
    doors->count = 0;
    oribi_buf_deinit(&doors->site);
}

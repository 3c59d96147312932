/* Announced configuration. Reading order: the mold's side, then the supervisor's in the order of announced.h. */
#include "supervisor/announced.h"

#include "supervisor/logs.h"
#include "supervisor/context.h"
#include "supervisor/frontends.h"
#include "supervisor/generation.h"
#include "supervisor/manager.h"
#include "supervisor/start.h"
#include "supervisor/watched.h"
#include "oribi/supervisor/frontend_text.h"
#include "oribi/supervisor/message.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)ORIBI_OPTIONS_ANNOUNCED_CAP <= (int)ORIBI_MESSAGE_TEXT_MAX, "one message tells all options");

struct oribi__announced {
    int32_t mold;                     /* pid of the mold that announces; 0: none does */
    char error[ORIBI_ERROR_TEXT_CAP]; /* why its generation cannot be the next one, though it is ready; "": it can */
    bool has_config;
    struct oribi_policy_config config;
    enum oribi_log_level log_level;
    bool has_restart_file;
    char restart_file[ORIBI__WATCHED_PATH_CAP];
    bool has_local;
    struct oribi_buf local; /* oribi__frontend_text_local() */
    uint32_t named_count;
    char named[ORIBI_LISTENERS_MAX][ORIBI_ADDRESS_TEXT_CAP]; /* specs of its listeners */
    uint32_t adopted_from; /* from this index on the supervisor's listeners are those that the generation has opened */
};

/* --- in the mold --- */

static void tell(struct oribi__process_context *context, struct oribi_message *message, int passed)
{
    int code = passed >= 0 ? oribi_message_send_fd(context->message_fd, message, passed)
                           : oribi_message_send(context->message_fd, message, 1);
    if (code < 0)
        oribi_log(ORIBI_LOG_WARN, "reload: the supervisor cannot be told the configuration: %s", oribi_os_error_text());
}

/* Properties of a listener that a reload cannot change. */
enum { KIND_FRONTEND = 1, KIND_TLS = 2 };

static uint32_t kind_of(const struct oribi_listener *item)
{
    return (item->frontend ? KIND_FRONTEND : 0u) | (item->tls ? KIND_TLS : 0u);
}

/* In as many records as it takes. */
static void announce_differing(struct oribi__process_context *context, struct oribi_message *message)
{
    struct oribi_buf lines = {0};
    oribi_options_differing(context->options, &lines);
    message->kind = ORIBI_MESSAGE_MOLD_DIFFERING;
    for (size_t at = 0; at < lines.len; at += ORIBI_MESSAGE_TEXT_MAX) {
        size_t left = lines.len - at;
        oribi_message_set_text(message, lines.p + at, left < ORIBI_MESSAGE_TEXT_MAX ? left : ORIBI_MESSAGE_TEXT_MAX);
        tell(context, message, -1);
    }
    oribi_buf_deinit(&lines);
}

static void announce_restart_file(struct oribi__process_context *context, struct oribi_message *message)
{
    char path[ORIBI__WATCHED_PATH_CAP];
    oribi__watched_restart_path(context->options, path);
    message->kind = ORIBI_MESSAGE_MOLD_RESTART_FILE;
    oribi_message_set_text(message, path, strlen(path));
    tell(context, message, -1);
}

static void announce_local(struct oribi__process_context *context, struct oribi_message *message)
{
    struct oribi_buf text = {0};
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = -1;
    if (oribi__frontends_wanted(context->listeners) && oribi__frontend_text_local(context->options, &text) == 0)
        fd = oribi__frontend_text_fd(&text, error); /* without it frontends go on with what they have */
    if (fd >= 0) {
        message->kind = ORIBI_MESSAGE_MOLD_LOCAL;
        message->text_len = 0;
        tell(context, message, fd);
        oribi_os_close(fd);
    }
    oribi_buf_deinit(&text);
}

void oribi__announce(struct oribi__process_context *context, uint32_t generation)
{
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_OPTIONS, .generation = generation, .pid = getpid()};
    char text[ORIBI_OPTIONS_ANNOUNCED_CAP];
    oribi_message_set_text(&message, text, oribi_options_announce(context->options, text, sizeof(text)));
    tell(context, &message, -1);
    announce_differing(context, &message);
    announce_restart_file(context, &message);
    announce_local(context, &message);
    message.kind = ORIBI_MESSAGE_MOLD_LISTENER;
    for (uint32_t i = 0; i < context->listeners->count; i++) {
        const struct oribi_listener *item = &context->listeners->items[i];
        oribi_message_set_text(&message, item->spec, strlen(item->spec));
        message.slot = kind_of(item);
        tell(context, &message, item->fresh ? item->fd : -1);
    }
}

/* --- in the supervisor --- */

/* Listeners that only the generation in question has brought along; it comes to nothing. */
static void drop_adopted(struct oribi__context *context)
{
    struct oribi_listeners *listeners = context->process.listeners;
    while (listeners->count > context->announced->adopted_from)
        oribi_listener_close(&listeners->items[--listeners->count], true);
}

static void begin(struct oribi__context *context, int32_t pid)
{
    if (context->announced->mold == pid)
        return;
    oribi__announced_drop(context); /* what an earlier mold has announced is void */
    context->announced->mold = pid;
}

void oribi__announced_drop(struct oribi__context *context)
{
    drop_adopted(context);
    context->announced->mold = 0;
    context->announced->error[0] = '\0';
    context->announced->has_config = false;
    context->announced->has_restart_file = false;
    context->announced->has_local = false;
    oribi_buf_deinit(&context->announced->local);
    context->announced->named_count = 0;
    oribi__boot_log_drop(context);
    context->announced->adopted_from = context->process.listeners->count;
}

static void keep_options(struct oribi__context *context, const char *text)
{
    struct oribi_options options = *context->process.options;
    oribi_options_take_over(&options, text);
    oribi__policy_config(context, &options, context->policy.config.workers_max, &context->announced->config);
    context->announced->log_level = oribi__log_level(&options);
    context->announced->has_config = true;
}

static void keep_restart_file(struct oribi__context *context, const char *path)
{
    int n = snprintf(context->announced->restart_file, ORIBI__WATCHED_PATH_CAP, "%s", path);
    context->announced->has_restart_file = n < ORIBI__WATCHED_PATH_CAP && (path[0] == '/' || path[0] == '\0');
}

/* Takes the descriptor. */
static void keep_local(struct oribi__context *context, int fd)
{
    struct oribi_buf *local = &context->announced->local;
    local->len = 0;
    context->announced->has_local = fd >= 0 && oribi__frontend_text_read(fd, local) == 0;
    oribi_os_close(fd);
}

/* Frontends have the addresses that they were started with. */
static void check_frontend(struct oribi__context *context, const char *spec, uint32_t kind)
{
    const struct oribi_listeners *listeners = context->process.listeners;
    uint32_t now = 0;
    for (uint32_t i = 0; i < context->announced->adopted_from; i++)
        if (strcmp(listeners->items[i].spec, spec) == 0)
            now = kind_of(&listeners->items[i]);
    bool tls = kind & KIND_TLS && strncmp(spec, "tcp://", 6) == 0;
    if (now != kind)
        (void)snprintf(
            context->announced->error, sizeof(context->announced->error),
            "%s%.100s: what a frontend listens on (tls://, ?frontend=on) is changed by an upgrade (USR2), not by a "
            "reload",
            tls ? "tls://" : "", spec + (tls ? 6 : 0));
}

static void keep_listener(struct oribi__context *context, const char *spec, uint32_t kind, int passed)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    check_frontend(context, spec, kind);
    if (context->announced->named_count < ORIBI_LISTENERS_MAX)
        (void)snprintf(context->announced->named[context->announced->named_count++], ORIBI_ADDRESS_TEXT_CAP, "%.*s",
                       ORIBI_ADDRESS_TEXT_CAP - 1, spec);
    if (passed >= 0 && oribi_listeners_adopt(context->process.listeners, passed, ORIBI_ORIGIN_OWN, spec, error) < 0)
        (void)snprintf(context->announced->error, sizeof(context->announced->error), "%s", error);
}

void oribi__announced_message(struct oribi__context *context, const struct oribi_message *message, int passed)
{
    if (!context->policy.next_generation || message->generation != context->policy.next_generation) {
        oribi_os_close(passed);
        return; /* the current one's mold was replaced: what is in force stays in force */
    }
    begin(context, message->pid);
    if (message->kind == ORIBI_MESSAGE_MOLD_OPTIONS) {
        keep_options(context, message->text);
        oribi_os_close(passed);
    } else if (message->kind == ORIBI_MESSAGE_MOLD_DIFFERING) {
        oribi__boot_log_hear(context, message->text, strnlen(message->text, message->text_len));
        oribi_os_close(passed);
    } else if (message->kind == ORIBI_MESSAGE_MOLD_RESTART_FILE) {
        keep_restart_file(context, message->text);
        oribi_os_close(passed);
    } else if (message->kind == ORIBI_MESSAGE_MOLD_LOCAL) {
        keep_local(context, passed);
    } else {
        keep_listener(context, message->text, message->slot, passed);
    }
}

void oribi__announced_ready(struct oribi__context *context, struct oribi_policy_event *event)
{
    if (context->announced->mold != event->pid)
        return;
    if (context->announced->error[0]) {
        event->type = ORIBI_EVENT_MOLD_FAILED;
        event->refused = true;
        event->text = context->announced->error;
        oribi__mold_socket_close(context, event->pid); /* it believes itself to be wanted, and is to leave */
    } else if (context->announced->has_config) {
        event->config = &context->announced->config;
    }
}

static bool is_named(const struct oribi__context *context, const struct oribi_listener *item)
{
    for (uint32_t i = 0; i < context->announced->named_count; i++)
        if (strcmp(context->announced->named[i], item->spec) == 0)
            return true;
    return false;
}

/* Addresses that the new configuration does not have any more are closed here; workers of the old generation serve
 * theirs until they go. */
void oribi__announced_commit(struct oribi__context *context)
{
    struct oribi_listeners *listeners = context->process.listeners;
    uint32_t kept = 0;
    if (context->announced->has_config)
        oribi_log_set_level(context->announced->log_level);
    if (context->announced->has_restart_file)
        oribi__restart_file_watch(context, context->announced->restart_file);
    if (context->announced->has_local)
        oribi__frontends_local(context, &context->announced->local);
    oribi__boot_log_commit(context);
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (context->announced->named_count > 0 && !is_named(context, item)) {
            oribi_log(ORIBI_LOG_INFO, "no longer listening on %s", oribi_listener_shown(item));
            oribi_listener_close(item, true);
            continue;
        }
        if (i >= context->announced->adopted_from)
            oribi_log(ORIBI_LOG_INFO, "listening on %s as well", oribi_listener_shown(item));
        listeners->items[kept++] = *item;
    }
    listeners->count = kept;
    context->announced->adopted_from = kept;
    oribi__announced_drop(context); /* what was announced is in force: forget it */
}

/* --- the module --- */

static int begin_module(struct oribi__context *context, char *error)
{
    context->announced->adopted_from = context->process.listeners->count;
    return 0;
}

static void forget(struct oribi__context *context)
{
    oribi_buf_deinit(&context->announced->local);
}

const struct oribi__module oribi__announced_module = {
    .bytes = sizeof(struct oribi__announced),
    .begin = begin_module,
    .forget = forget,
    .end = forget,
};

/* Lines of the log about a start and about a reload; see the header. */
#include "supervisor/logs.h"

#include "supervisor/context.h"

#include "oribi/base/escape.h"
#include "oribi/base/buf.h"
#include "oribi/base/log.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/config/options_names.h"

#include <stdio.h>
#include <string.h>

enum { OPTIONS_BYTES_MAX = 16 * 1024 }; /* of a generation's differing options; more cannot be */

enum { VERSION_CAP = 32, LANGUAGE_CAP = 64 };

/* A member of struct oribi_supervisor. */
struct oribi__boot_log {
    char version[VERSION_CAP];   /* "" when the program has not told it */
    char language[LANGUAGE_CAP]; /* "ruby 3.3.8" */
    bool said;
    struct oribi_buf options;      /* in force; lines of oribi_options_differing() */
    struct oribi_buf next_options; /* of the generation that loads, as far as it has told them */
    bool next_told;                /* the generation that loads has begun to tell its options */
};

void oribi__boot_log_name(struct oribi__context *context, const char *version, const char *language)
{
    (void)snprintf(context->boot_log->version, VERSION_CAP, "%s", version);
    (void)snprintf(context->boot_log->language, LANGUAGE_CAP, "%s", language);
}

const char *oribi__boot_log_version(const struct oribi__context *context)
{
    return context->boot_log->version;
}

static void put_json(struct oribi_buf *out, const char *key, const char *text)
{
    oribi_buf_print(out, "\"%s\":", key);
    oribi_escape_append_json(out, oribi_slice(text, strlen(text)));
    oribi_buf_print(out, ",");
}

static const char *text_of(struct oribi_buf *buf)
{
    oribi_buf_append(buf, "", 1);
    return buf->p;
}

static struct oribi_slice members_of(const struct oribi_buf *json)
{
    return oribi_slice(json->p, json->len);
}

void oribi__boot_log_begin(struct oribi__context *context)
{
    oribi_options_differing(context->process.options, &context->boot_log->options);
}

void oribi__boot_log_say(struct oribi__context *context)
{
    struct oribi__boot_log *log = context->boot_log;
    if (log->said || !log->version[0])
        return;
    log->said = true;
    const struct oribi_options *options = context->process.options;
    struct oribi_buf shown = {0};
    struct oribi_buf json = {0};
    struct oribi_buf values = {0};
    oribi_options_show(log->options.p, &shown, &values);
    put_json(&json, "version", log->version);
    put_json(&json, "language", log->language);
    put_json(&json, "environment", options->env ? options->env : "");
    oribi_buf_print(&json, "\"options\":{");
    oribi_buf_append(&json, values.p ? values.p : "", values.len);
    oribi_buf_print(&json, "}");
    bool any = shown.len > 0;
    oribi_log_with(ORIBI_LOG_INFO, members_of(&json), "%s %s (%s), environment %s, pid %d%s%s",
                   context->process.program, log->version, log->language, options->env ? options->env : "(none)",
                   context->pid, any ? ": " : "", any ? text_of(&shown) : "");
    for (uint32_t i = 0; i < options->ignored_count; i++)
        oribi_log(ORIBI_LOG_WARN, "%s (%s) is ignored: %s", options->ignored[i]->name, options->ignored[i]->server,
                  options->ignored[i]->advice);
    oribi_buf_deinit(&shown);
    oribi_buf_deinit(&json);
    oribi_buf_deinit(&values);
}

void oribi__boot_log_up(struct oribi__context *context, const char *line)
{
    struct oribi_buf json = {0};
    char threads[32] = "";
    uint32_t workers = context->policy.target;
    uint32_t per_worker = context->process.options->threads;
    const struct oribi_listeners *listeners = context->process.listeners;
    oribi_buf_print(&json, "\"addresses\":[");
    for (uint32_t i = 0; i < listeners->count; i++) {
        const char *text = oribi_listener_shown(&listeners->items[i]);
        oribi_buf_print(&json, "%s", i ? "," : "");
        oribi_escape_append_json(&json, oribi_slice(text, strlen(text)));
    }
    oribi_buf_print(&json, "],\"workers\":%u,\"threads\":%u", workers, per_worker);
    if (per_worker > 1)
        (void)snprintf(threads, sizeof(threads), " × %u threads", per_worker);
    oribi_log_with(ORIBI_LOG_INFO, members_of(&json), "%s, %u worker%s%s, pid %d", listeners->count ? line : "started",
                   workers, oribi_log_plural(workers), threads, context->pid);
    oribi_buf_deinit(&json);
}

/* --- reload --- */

void oribi__boot_log_hear(struct oribi__context *context, const char *text, size_t n)
{
    struct oribi_buf *next = &context->boot_log->next_options;
    context->boot_log->next_told = true;
    if (next->len + n <= OPTIONS_BYTES_MAX)
        (void)oribi_buf_try_append(next, text, n); /* else the log says less */
}

void oribi__boot_log_drop(struct oribi__context *context)
{
    context->boot_log->next_options.len = 0;
    context->boot_log->next_told = false;
}

void oribi__boot_log_commit(struct oribi__context *context)
{
    struct oribi__boot_log *log = context->boot_log;
    struct oribi_buf shown = {0};
    struct oribi_buf json = {0};
    struct oribi_buf before = log->options;
    if (!log->next_told) /* a manager's generation loads nothing anew */
        return;
    oribi_buf_append(&log->next_options, "", 1);
    log->options = log->next_options;
    log->next_options = (struct oribi_buf){0};
    log->next_told = false;
    oribi_buf_print(&json, "\"changed\":{");
    struct oribi_buf values = {0};
    oribi_log_set_json(oribi_options_differing_is(log->options.p, "error_log_format", "json"));
    oribi_options_show_changes(before.p ? before.p : "", log->options.p, &shown, &values);
    oribi_buf_append(&json, values.p ? values.p : "", values.len);
    oribi_buf_print(&json, "}");
    if (shown.len)
        oribi_log_with(ORIBI_LOG_INFO, members_of(&json), "reload: %s", text_of(&shown));
    oribi_buf_deinit(&before);
    oribi_buf_deinit(&shown);
    oribi_buf_deinit(&values);
    oribi_buf_deinit(&json);
}

void oribi__boot_log_members(const struct oribi_policy_action *action, char *dst, size_t cap)
{
    dst[0] = '\0';
    if (action->loaded)
        (void)snprintf(dst, cap, "\"load_ms\":%lld", (long long)action->loaded_ms);
}

static void forget(struct oribi__context *context)
{
    oribi_buf_deinit(&context->boot_log->options);
    oribi_buf_deinit(&context->boot_log->next_options);
}

const struct oribi__module oribi__boot_log_module = {
    .bytes = sizeof(struct oribi__boot_log),
    .forget = forget,
    .end = forget,
};

/* Changed files of the application and a touched restart_file, as events of the supervisor; and the way of the files'
 * names from the process that has loaded them: memory with the list, whose descriptor goes with a message. */
#include "supervisor/watched.h"

#include "supervisor/context.h"
#include "supervisor/manager.h"
#include "oribi/develop/watch.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/message.h"
#include "supervisor/process_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One of the two, with its watcher. */
struct look {
    struct oribi_watcher reports;
    struct oribi_timer again;
};

struct oribi__watched {
    struct oribi__watch files;
    struct look at_files;
    struct oribi__restart_file restart;
    struct look at_restart;
};

static ssize_t read_all(int fd, char *list, size_t bytes)
{
    size_t len = 0;
    ssize_t n;
    while (len < bytes && (n = pread(fd, list + len, bytes - len, (off_t)len)) > 0)
        len += (size_t)n;
    return (ssize_t)len;
}

void oribi__watch_message(struct oribi__context *context, int fd)
{
    size_t bytes;
    char *list = NULL;
    if (fd >= 0 && oribi_process_shared_memory_size(fd, &bytes) == 0 && bytes <= ORIBI__WATCH_LIST_BYTES_MAX)
        list = oribi_mem_try_alloc(bytes ? bytes : 1, 1);
    if (list)
        oribi__watch_files(&context->watched->files, list, (size_t)read_all(fd, list, bytes));
    oribi_mem_free(list);
    oribi_os_close(fd);
}

/* Paths below the working directory are shorter without it. */
static const char *short_path(const char *path)
{
    char here[1024];
    size_t n = getcwd(here, sizeof(here)) ? strlen(here) : 0;
    return n > 1 && strncmp(path, here, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void reload(struct oribi__context *context)
{
    oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_RELOAD});
}

/* Waits for reports on `watch`, or for the time to look; not `wanted`: for neither. */
static void plan(struct oribi__context *context, struct look *look, const struct oribi__watch *watch, bool wanted)
{
    int fd = wanted ? oribi__watch_fd(watch) : -1;
    if (fd < 0)
        oribi_dispatcher_forget(&context->dispatcher, &look->reports);
    else
        (void)oribi_dispatcher_watch(&context->dispatcher, &look->reports, fd, ORIBI_READ); /* else the time tells */
    oribi_dispatcher_arm(&context->dispatcher, &look->again, wanted ? oribi__watch_deadline(watch) : INT64_MAX);
}

/* --- files of the application --- */

static bool looks_at_files(const struct oribi__context *context)
{
    return context->watched->files.on && context->policy.up && !context->policy.stopping;
}

static void look_at_files(struct oribi__context *context)
{
    struct oribi__watch *files = &context->watched->files;
    char more[48] = "";
    const char *path = looks_at_files(context) ? oribi__watch_turn(files, oribi_clock_ms()) : NULL;
    plan(context, &context->watched->at_files, files, looks_at_files(context));
    if (!path)
        return;
    if (files->changed_count > 1)
        (void)snprintf(more, sizeof(more), " and %zu more", files->changed_count - 1); /* fits */
    oribi_log(ORIBI_LOG_INFO, "%s%s changed: loading the application anew", short_path(path), more);
    reload(context);
}

/* --- restart_file --- */

static bool looks_at_restart_file(const struct oribi__context *context)
{
    const struct oribi_policy *policy = &context->policy;
    return context->watched->restart.watch.on && policy->up && !policy->stopping && !policy->stop_at &&
           !policy->next_generation && !policy->rolling && !policy->upgrade_pid;
}

static void look_at_restart_file(struct oribi__context *context)
{
    struct oribi__restart_file *restart = &context->watched->restart;
    bool looks = looks_at_restart_file(context);
    bool touched = looks && oribi__watch_turn(&restart->watch, oribi_clock_ms());
    plan(context, &context->watched->at_restart, &restart->watch, looks);
    if (!touched)
        return;
    oribi_log(ORIBI_LOG_INFO, "%s was touched: reloading", restart->path);
    reload(context);
}

/* --- the module --- */

static void files_report(void *owner, uint8_t ready)
{
    look_at_files(owner);
}

static void files_again(void *owner)
{
    look_at_files(owner);
}

static void restart_reports(void *owner, uint8_t ready)
{
    look_at_restart_file(owner);
}

static void restart_again(void *owner)
{
    look_at_restart_file(owner);
}

_Static_assert((int)ORIBI__WATCHED_PATH_CAP == (int)ORIBI__RESTART_PATH_CAP, "develop/watch.h fills it");

void oribi__watched_restart_path(const struct oribi_options *options, char path[ORIBI__WATCHED_PATH_CAP])
{
    oribi__restart_path(options, path);
}

void oribi__watched_begin(struct oribi__context *context)
{
    char path[ORIBI__RESTART_PATH_CAP];
    const struct oribi_options *options = context->process.options;
    if (!context->kind->serves)
        return;
    if (options->dev)
        oribi__watch_begin(&context->watched->files, &options->watch);
    oribi__restart_path(options, path);
    oribi__restart_file_watch(context, path);
}

/* The watch of another file has another descriptor. */
void oribi__restart_file_watch(struct oribi__context *context, const char *path)
{
    oribi_dispatcher_forget(&context->dispatcher, &context->watched->at_restart.reports);
    oribi__restart_watch(&context->watched->restart, path);
}

const char *oribi__restart_file_path(const struct oribi__context *context)
{
    return context->watched->restart.path;
}

void oribi__watched_export(const struct oribi__context *context, struct oribi_buf *out)
{
    oribi__watch_export(&context->watched->files, out);
}

void oribi__watched_import(struct oribi__context *context, const char *bytes, size_t len)
{
    oribi__watch_import(&context->watched->files, bytes, len);
}

static void init(struct oribi__context *context)
{
    struct oribi__watched *watched = context->watched;
    watched->files.os.fd = watched->restart.watch.os.fd = -1;
    watched->at_files.reports = (struct oribi_watcher){.ready = files_report, .owner = context};
    watched->at_files.again = (struct oribi_timer){.expired = files_again, .owner = context};
    watched->at_restart.reports = (struct oribi_watcher){.ready = restart_reports, .owner = context};
    watched->at_restart.again = (struct oribi_timer){.expired = restart_again, .owner = context};
}

/* The server is up, or stops, or reloads: what is to be watched may be other files now. */
static void settle(struct oribi__context *context)
{
    struct oribi__watched *watched = context->watched;
    if (watched->files.on)
        plan(context, &watched->at_files, &watched->files, looks_at_files(context));
    if (watched->restart.watch.on)
        plan(context, &watched->at_restart, &watched->restart.watch, looks_at_restart_file(context));
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->watched->files.os.fd);
    oribi__close(&context->watched->restart.watch.os.fd);
}

static void end(struct oribi__context *context)
{
    struct oribi__watched *watched = context->watched;
    plan(context, &watched->at_files, &watched->files, false);
    plan(context, &watched->at_restart, &watched->restart.watch, false);
    oribi__watch_end(&watched->files);
    oribi__restart_end(&watched->restart);
}

const struct oribi__module oribi__watched_module = {
    .bytes = sizeof(struct oribi__watched),
    .init = init,
    .settle = settle,
    .let_go = let_go,
    .end = end,
};

/* --- in a mold or a worker --- */

void oribi_process_files(struct oribi_process *p, const char *list, size_t len)
{
    const struct oribi__process_context *context = p->mold   ? &p->mold->context
                                                   : p->link ? oribi__link_context(p->link)
                                                             : NULL;
    struct oribi_message message = {.kind = ORIBI_MESSAGE_FILES, .pid = (int32_t)getpid()};
    int fd;
    if (!context || context->message_fd < 0 || len > ORIBI__WATCH_LIST_BYTES_MAX ||
        oribi_process_shared_memory(0, &fd) < 0)
        return;
    if (oribi_os_write_all(fd, list, len) == 0)
        (void)oribi_message_send_fd(context->message_fd, &message, fd); /* the supervisor may be gone */
    oribi_os_close(fd);
}

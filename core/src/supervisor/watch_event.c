/* Changed files of the application and a touched restart_file, as events of the supervisor; and the way of the files'
 * names from the process that has loaded them: memory with the list, whose descriptor goes with a message. */
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/message.h"
#include "supervisor/process_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
        oribi__watch_files(&context->watch, list, (size_t)read_all(fd, list, bytes));
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

bool oribi__watch_event(struct oribi__context *context, struct oribi_policy_event *event)
{
    char more[48] = "";
    if (!context->watch.on || !context->policy.up || context->policy.stopping)
        return false;
    const char *path = oribi__watch_turn(&context->watch, oribi_clock_ms());
    if (!path)
        return false;
    if (context->watch.changed_count > 1)
        (void)snprintf(more, sizeof(more), " and %zu more", context->watch.changed_count - 1); /* fits */
    oribi_log(ORIBI_LOG_INFO, "%s%s changed: loading the application anew", short_path(path), more);
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_RELOAD};
    return true;
}

/* --- restart_file --- */

static bool looks_at_restart_file(const struct oribi__context *context)
{
    const struct oribi_policy *policy = &context->policy;
    return context->restart_file.watch.on && policy->up && !policy->stopping && !policy->stop_at &&
           !policy->next_generation && !policy->rolling && !policy->upgrade_pid;
}

bool oribi__restart_event(struct oribi__context *context, struct oribi_policy_event *event)
{
    if (!looks_at_restart_file(context) || !oribi__watch_turn(&context->restart_file.watch, oribi_clock_ms()))
        return false;
    oribi_log(ORIBI_LOG_INFO, "%s was touched: reloading", context->restart_file.path);
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_RELOAD};
    return true;
}

int64_t oribi__restart_deadline(const struct oribi__context *context)
{
    return looks_at_restart_file(context) ? oribi__watch_deadline(&context->restart_file.watch) : INT64_MAX;
}

int oribi__restart_fd(const struct oribi__context *context)
{
    return looks_at_restart_file(context) ? oribi__watch_fd(&context->restart_file.watch) : -1;
}

/* --- in a mold or a worker --- */

static int write_all(int fd, const char *list, size_t len)
{
    while (len > 0) {
        ssize_t n = oribi_os_write(fd, list, len);
        if (n <= 0)
            return ORIBI_ESYS;
        list += n;
        len -= (size_t)n;
    }
    return 0;
}

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
    if (write_all(fd, list, len) == 0)
        (void)oribi_message_send_fd(context->message_fd, &message, fd); /* the supervisor may be gone */
    oribi_os_close(fd);
}

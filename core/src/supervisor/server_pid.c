/* The names of a server's pid file; see the header. */
#include "supervisor/server_pid.h"

#include "supervisor/context.h"
#include "oribi/supervisor/pid_file.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options.h"

#include <stdio.h>
#include <string.h>

struct oribi__server_pid {
    struct oribi_pid_file file;
    char *path; /* its name in normal times; NULL: none */
};

int oribi__server_pid_write(struct oribi__context *context, char *error)
{
    struct oribi_pid_file *file = &context->server_pid->file;
    return file->fd >= 0 ? oribi_pid_file_write(file, error) : 0;
}

/* Our own predecessor may still have the first name, while it answers what it had begun. */
void oribi__server_pid_step_aside(struct oribi__context *context)
{
    struct oribi__server_pid *pid = context->server_pid;
    char path[4096];
    char error[ORIBI_ERROR_TEXT_CAP];
    if (pid->file.fd < 0)
        return;
    (void)snprintf(path, sizeof(path), "%s.old", pid->path); /* a path of the file system fits */
    if (oribi_pid_file_look(path, error) == ORIBI_ELIMIT)
        (void)snprintf(path, sizeof(path), "%s.old.%ld", pid->path, (long)context->pid);
    if (oribi_pid_file_rename(&pid->file, path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed: %s", oribi_os_error_text());
}

void oribi__server_pid_take_back(struct oribi__context *context)
{
    struct oribi__server_pid *pid = context->server_pid;
    if (pid->file.fd >= 0 && oribi_pid_file_rename(&pid->file, pid->path) < 0)
        oribi_log(ORIBI_LOG_WARN, "pid_file: cannot be renamed back: %s", oribi_os_error_text());
}

void oribi__server_pid_remove(struct oribi__context *context)
{
    oribi_pid_file_remove(&context->server_pid->file);
}

void oribi__server_pid_leave(struct oribi__context *context)
{
    oribi_pid_file_forget(&context->server_pid->file);
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->server_pid->file.fd = -1;
}

static int begin(struct oribi__context *context, char *error)
{
    struct oribi__server_pid *pid = context->server_pid;
    const char *option = context->process.options->pid_file;
    if (!option)
        return 0;
    int code = oribi_pid_file_lock(&pid->file, option, error);
    if (code < 0)
        return code;
    const char *name = oribi_pid_file_name(&pid->file);
    size_t n = strlen(name) + 1;
    pid->path = oribi_mem_alloc(n, 1);
    memcpy(pid->path, name, n);
    return 0;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->server_pid->file.fd);
}

static void forget(struct oribi__context *context)
{
    oribi_pid_file_forget(&context->server_pid->file);
    oribi_mem_free(context->server_pid->path);
}

static void end(struct oribi__context *context)
{
    oribi_pid_file_remove(&context->server_pid->file);
    oribi_mem_free(context->server_pid->path);
}

const struct oribi__module oribi__server_pid_module = {
    .bytes = sizeof(struct oribi__server_pid),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .forget = forget,
    .end = end,
};

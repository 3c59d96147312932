/* Limits of the machine, of its processes and control groups, compared with what the options ask for. Only numbers:
 * oribi_check_machine() gathers them. */
#include "command/check_private.h"

#include "oribi/config/address.h"
#include "oribi/worker/worker.h"

#include <stdio.h>

#define WRONG ORIBI_CHECK_WRONG
#define RISK  ORIBI_CHECK_RISK

enum {
    WORKERS_FOR_EACH_CPU = 4, /* more of them wait for each other rather than for something else */
    MEBIBYTE = 1024 * 1024,
};

struct judge {
    struct oribi_check *check;
    const struct oribi_options *options;
    const struct oribi__check_facts *facts;
};

static unsigned long long mebibytes(int64_t bytes)
{
    return (unsigned long long)bytes / MEBIBYTE;
}

/* a * b, or INT64_MAX. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* --- descriptors and files --- */

static void judge_descriptors(const struct judge *j)
{
    const struct oribi_machine *machine = &j->facts->machine;
    uint64_t wanted = oribi_worker_descriptors(j->options);
    char todo[ORIBI_CHECK_TEXT_CAP];
    if (machine->descriptors_max < wanted) {
        (void)snprintf(todo, sizeof(todo),
                       "raise the hard limit to %llu (LimitNOFILE= in systemd, --ulimit nofile= in Docker), or lower "
                       "connections_max",
                       (unsigned long long)wanted);
        oribi__check_say(j->check, RISK, "descriptors",
                         "A worker that runs out of descriptors accepts no connection until others have closed", todo,
                         "a worker may open %llu files, and connections_max %u needs %llu",
                         (unsigned long long)machine->descriptors_max, j->options->connections_max,
                         (unsigned long long)wanted);
    }
    if (machine->files_max / j->options->workers < wanted)
        oribi__check_say(j->check, RISK, "system-files",
                         "When the system has no room for open files, other programs fail as well",
                         "raise fs.file-max (sysctl), or lower workers or connections_max",
                         "%u workers with %llu descriptors each are more than the system allows (fs.file-max %llu)",
                         j->options->workers, (unsigned long long)wanted, (unsigned long long)machine->files_max);
}

static void judge_file_size(const struct judge *j)
{
    uint64_t longest = j->facts->machine.file_bytes_max;
    if (longest < (uint64_t)j->options->limits.body_bytes_max)
        oribi__check_say(j->check, RISK, "file-size",
                         "A longer request body cannot be stored, and its request is refused with 507",
                         "raise the limit (ulimit -f, LimitFSIZE=), or lower body_bytes_max",
                         "files of this process may have %llu bytes, and body_bytes_max is %lld",
                         (unsigned long long)longest, (long long)j->options->limits.body_bytes_max);
}

/* --- memory and processors --- */

static void judge_memory(const struct judge *j)
{
    const struct oribi_options *options = j->options;
    const struct oribi_machine *machine = &j->facts->machine;
    const char *whose = machine->is_group_memory ? "the control group" : "the machine";
    int64_t workers = times(options->memory_max, options->workers);
    int64_t buffers = times(options->buffers_memory_max, options->workers);
    if (machine->memory_bytes < 0)
        return;
    if (options->memory_max > 0 && workers > machine->memory_bytes)
        oribi__check_say(j->check, RISK, "memory",
                         "The kernel kills a process before memory_max has any worker replaced",
                         "lower memory_max or workers, or give more memory",
                         "memory_max times workers is %llu MiB, and %s has %llu MiB", mebibytes(workers), whose,
                         mebibytes(machine->memory_bytes));
    if (buffers > machine->memory_bytes)
        oribi__check_say(j->check, RISK, "buffers-memory",
                         "Bodies and answers of slow clients alone can take more memory than there is",
                         "lower buffers_memory_max or workers, or give more memory",
                         "buffers_memory_max times workers is %llu MiB, and %s has %llu MiB", mebibytes(buffers), whose,
                         mebibytes(machine->memory_bytes));
}

static void judge_cpus(const struct judge *j)
{
    uint32_t cpus = j->facts->machine.cpus;
    if (j->options->workers > (uint64_t)cpus * WORKERS_FOR_EACH_CPU)
        oribi__check_say(j->check, RISK, "cpus",
                         "Calls that compute take turns, each of them takes longer, and all workers need memory",
                         "lower workers (auto takes one for each processor), unless calls mostly wait",
                         "%u workers share %u processor%s (affinity and quota of the control group)",
                         j->options->workers, cpus, cpus == 1 ? "" : "s");
}

/* --- processes --- */

/* Processes and threads, as far as they are the server's. */
static uint64_t tasks_of_worker(const struct oribi_options *options)
{
    return 1 + (options->helper ? 1 : 0) + (options->threads > 1 ? options->threads : 0);
}

static uint64_t tasks_of_server(const struct oribi_options *options)
{
    return 2 + options->workers * tasks_of_worker(options); /* supervisor and mold */
}

/* A second mold, and workers that start before others end. */
static uint64_t tasks_of_reload(const struct oribi_options *options)
{
    uint32_t tenth = options->workers / 10 > 0 ? options->workers / 10 : 1;
    uint32_t roll = options->roll_max_unavailable ? options->roll_max_unavailable : tenth;
    return 1 + (roll < options->workers ? roll : options->workers) * tasks_of_worker(options);
}

static void judge_tasks(const struct judge *j)
{
    int64_t left = j->facts->machine.tasks_left;
    uint64_t start = j->facts->is_running ? 0 : tasks_of_server(j->options);
    uint64_t needed = start + tasks_of_reload(j->options);
    const char *todo = "raise pids.max of the control group (TasksMax=, --pids-limit), or lower workers or threads";
    if (left < 0)
        return;
    if ((uint64_t)left < start)
        oribi__check_say(j->check, WRONG, "tasks", "Forking workers or starting their threads fails", todo,
                         "the server needs %llu processes and threads, and its control group has room for %lld",
                         (unsigned long long)start, (long long)left);
    else if ((uint64_t)left < needed)
        oribi__check_say(j->check, RISK, "tasks-reload", "A reload or a worker's replacement fails", todo,
                         "with a reload the server needs %llu processes and threads %s, and its control group has room "
                         "for %lld",
                         (unsigned long long)needed, j->facts->is_running ? "more" : "in all", (long long)left);
}

/* The limit does not hold for root, but for the user that the workers become. */
static void judge_processes(const struct judge *j)
{
    uint64_t needed = tasks_of_server(j->options) + tasks_of_reload(j->options);
    bool is_bound = !j->facts->is_root || j->options->user;
    if (is_bound && j->facts->machine.processes_max < needed)
        oribi__check_say(j->check, RISK, "processes", "Forking workers or starting their threads fails",
                         "raise the limit (ulimit -u, LimitNPROC=), or lower workers or threads",
                         "with a reload the server needs %llu processes and threads, and its user may have %llu",
                         (unsigned long long)needed, (unsigned long long)j->facts->machine.processes_max);
}

/* --- the queue of the kernel --- */

static void judge_backlog(const struct judge *j)
{
    uint32_t longest = j->options->backlog;
    char ignored[ORIBI_ERROR_TEXT_CAP]; /* check_ports.c tells of wrong addresses */
    struct oribi_address address;
    for (size_t i = 0; i < j->options->bind.count; i++)
        if (oribi_address_parse(j->options->bind.items[i], &address, ignored) == 0 && address.backlog > longest)
            longest = address.backlog;
    if (longest > j->facts->machine.backlog_max)
        oribi__check_say(j->check, RISK, "backlog", "The kernel cuts the queue without a word",
                         "raise net.core.somaxconn (sysctl), or lower backlog",
                         "backlog %u is more than net.core.somaxconn %u", longest, j->facts->machine.backlog_max);
}

/* --- TMPDIR --- */

static void judge_temp(const struct judge *j)
{
    const struct oribi__check_temp *temp = &j->facts->temp;
    const struct oribi_options *options = j->options;
    int64_t budget = times(options->buffers_file_max, options->workers);
    if (temp->trouble) {
        oribi__check_say(j->check, WRONG, "tmpdir",
                         "Bodies longer than body_memory_max are refused, and long answers to slow clients are cut",
                         "set TMPDIR to a folder that the workers' user may write to", "no file can be made in %s: %s",
                         temp->dir, temp->trouble);
        return;
    }
    if (temp->disk.free_bytes < options->limits.body_bytes_max)
        oribi__check_say(j->check, RISK, "tmpdir-space", "The request is refused with 507 in the middle of its upload",
                         "make room, set TMPDIR to a larger file system, or lower body_bytes_max",
                         "%s has %llu MiB left, and one body may have %llu MiB (body_bytes_max)", temp->dir,
                         mebibytes(temp->disk.free_bytes), mebibytes(options->limits.body_bytes_max));
    /* The default is a bound for mistakes, and larger than many disks. */
    if (oribi__check_is_given(options, "buffers_file_max") && temp->disk.free_bytes < budget)
        oribi__check_say(j->check, RISK, "tmpdir-budget", "The disk is full before the budget refuses requests",
                         "make room, set TMPDIR to a larger file system, or lower buffers_file_max",
                         "%s has %llu MiB left, and buffers_file_max times workers is %llu MiB", temp->dir,
                         mebibytes(temp->disk.free_bytes), mebibytes(budget));
    if (temp->disk.is_memory && j->facts->machine.is_group_memory)
        oribi__check_say(j->check, RISK, "tmpdir-memory",
                         "Uploads that should go to the disk count against the control group's memory, as workers do",
                         "set TMPDIR to a folder on a disk", "%s is a file system in memory", temp->dir);
}

/* --- features of the kernel --- */

static void judge_features(const struct judge *j)
{
    const struct oribi_machine *machine = &j->facts->machine;
    const char *todo = "allow it in the sandbox (seccomp profile), or take a newer kernel";
    if (!machine->has_memfd)
        oribi__check_say(j->check, WRONG, "memfd", "The server's processes have no memory in common, and a start fails",
                         todo, "the system call memfd_create is refused");
    if (!machine->has_subreaper)
        oribi__check_say(j->check, RISK, "subreaper",
                         "Workers do not become children of the supervisor, which cannot replace those that end", todo,
                         "prctl(PR_SET_CHILD_SUBREAPER) is refused");
    if (!machine->has_openat2 && j->options->mounts.count)
        oribi__check_say(j->check, RISK, "openat2", "Files of static are opened folder by folder, which takes longer",
                         todo, "the system call openat2 is refused");
    if (!machine->has_proc)
        oribi__check_say(j->check, RISK, "proc",
                         "memory_max is not kept, and ctl shows no memory and no processor time", "mount /proc",
                         "there is no /proc");
    if (machine->cannot_measure && j->options->memory_max > 0)
        oribi__check_say(j->check, RISK, "memory-max", "Workers that grow are not replaced",
                         "limit their requests (requests_max)",
                         "memory_max is not kept: this build measures no process");
}

void oribi__check_limits(struct oribi_check *check, const struct oribi_options *options,
                         const struct oribi__check_facts *facts)
{
    const struct judge j = {check, options, facts};
    judge_descriptors(&j);
    judge_file_size(&j);
    judge_memory(&j);
    judge_cpus(&j);
    judge_tasks(&j);
    judge_processes(&j);
    judge_backlog(&j);
    judge_temp(&j);
    judge_features(&j);
}

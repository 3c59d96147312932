/* Reading order: drive, what it calls for each step, then the test's side. */
#include "supervisor/lab.h"

#include <sys/prctl.h>

#include <time.h>

struct lab *lab;
int lab_log_fd;
static char self_path[4096];

void lab_pause_ms(int ms)
{
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
    (void)nanosleep(&pause, NULL);
}

static void forever(void)
{
    for (;;)
        (void)pause();
}

/* --- the language supervisor, as process.h tells it --- */

/* Answers one connection with the generation's number, after the client has sent a byte. */
static void answer_one(int listen_fd, struct oribi_process *p)
{
    int fd;
    char byte;
    char text[16];
    if (oribi_os_accept(listen_fd, &fd, NULL, NULL) < 0)
        return;
    struct pollfd readable = {fd, POLLIN, 0};
    while (poll(&readable, 1, 1000) < 0) /* a signal that stops us does not stop this answer */
        continue;
    if (readable.revents && read(fd, &byte, 1) == 1) {
        int n = snprintf(text, sizeof(text), "%u\n", oribi_process_generation(p));
        atomic_fetch_add(&lab->answers, 1);
        (void)!write(fd, text,
                     (size_t)n); /* a client that waits for it counts what it does not get, others have left */
    }
    close(fd);
}

void lab_carry_ballast(void)
{
    size_t bytes = (size_t)atomic_load(&lab->ballast_mb) << 20;
    char *p = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
    for (size_t i = 0; p && i < bytes; i += 4096)
        p[i] = 1;
}

/* RUN: until told to stop, or until a mold is to be made of this worker. */
static void run_worker(struct oribi_process *p)
{
    struct oribi_listeners *listeners = oribi_process_listeners(p);
    atomic_store(&oribi_process_slot(p)->state, ORIBI_SLOT_IDLE);
    while (atomic_load(&lab->ignore_stop) || !oribi_process_stopping(p)) {
        atomic_store(&oribi_process_slot(p)->request_count, (uint64_t)atomic_load(&lab->pretend_requests));
        if (oribi_process_due(p)) {
            bool leaves = oribi_process_turn(p);
            atomic_fetch_add(&lab->reopened, !leaves);
            if (leaves)
                return;
        }
        struct pollfd fds[4] = {{oribi_jobs_wake_fd(p), POLLIN, 0}, {oribi_process_life_fd(p), POLLIN, 0}};
        nfds_t count = 2;
        for (uint32_t i = 0; i < listeners->count && count < 4; i++)
            fds[count++] = (struct pollfd){listeners->items[i].fd, POLLIN, 0};
        (void)poll(fds, count, 50);
        for (nfds_t i = 2; i < count; i++)
            if (fds[i].revents)
                answer_one(fds[i].fd, p);
    }
}

static void load(struct oribi_process *p)
{
    atomic_store(&lab->mold_pids[atomic_fetch_add(&lab->mold_count, 1) % PIDS_MAX], getpid());
    if (atomic_load(&lab->load_fails) == 1)
        oribi_process_failed(p, "no such file\nline 1\nline 2", 26);
    if (atomic_load(&lab->load_fails) == 2)
        (void)raise(SIGKILL);
    while (atomic_load(&lab->load_fails) == 3)
        lab_pause_ms(1);
}

static void open_worker(struct oribi_process *p)
{
    if (atomic_load(&lab->slow_boot))
        forever();
    if (atomic_load(&lab->workers_fail) > 0) {
        atomic_fetch_sub(&lab->workers_fail, 1);
        oribi_process_failed(p, "no database", 11);
        return;
    }
    lab_carry_ballast();
    if (atomic_load(&oribi_process_slot(p)->long_call_us))
        atomic_fetch_add(&lab->warned, 1);
    if (atomic_load(&lab->in_call))
        atomic_store(&oribi_process_slot(p)->call_started_us, oribi_clock_us() - 1000000);
    oribi_process_ready(p, NULL);
    atomic_store(&oribi_process_slot(p)->state, ORIBI_SLOT_IDLE);
    int number = atomic_fetch_add(&lab->workers_ready, 1); /* several may be at it */
    atomic_store(&lab->worker_pids[number % PIDS_MAX], getpid());
    while (atomic_load(&lab->worker_count) != number)
        lab_pause_ms(1);
    atomic_store(&lab->worker_count, number + 1);
}

int lab_fail_start(const char *error)
{
    (void)dprintf(STDERR_FILENO, "test: %s\n", error);
    (void)oribi_process_start_failed(error);
    return 1;
}

void lab_run_hook(const struct oribi_step *action)
{
    if (strcmp(action->hook, "before_fork") == 0)
        atomic_fetch_add(&lab->hooks_before_fork, 1);
    if (strcmp(action->hook, "before_refork") == 0)
        atomic_fetch_add(&lab->hooks_refork, 1);
    if (strcmp(action->hook, "server_ready") == 0)
        atomic_fetch_add(&lab->hooks_up, 1);
    if (strcmp(action->hook, "server_ready") == 0)
        atomic_store(&lab->serve_pid, getpid());
    if (strcmp(action->hook, "before_reload") == 0)
        atomic_fetch_add(&lab->hooks_reload, 1);
    if (strcmp(action->hook, "on_worker_exit") != 0)
        return;
    atomic_store(&lab->last_status, action->status);
    snprintf(lab->last_reason, sizeof(lab->last_reason), "%s", action->reason);
    atomic_fetch_add(&lab->hooks_exit, 1);
}

/* The loop of process.h: of the supervisor, of molds, of workers. */
static int drive(struct oribi_process *p)
{
    for (;;) {
        const struct oribi_step *step = oribi_process_take(p);
        switch (step->type) {
        case ORIBI_STEP_WAIT:
            oribi_process_wait(p, -1);
            break;
        case ORIBI_STEP_FORK: {
            bool of_worker = oribi_process_role(p) == ORIBI_ROLE_INTERMEDIATE && step->fork == ORIBI_FORK_MOLD;
            if (oribi_process_forked(p, fork()) == ORIBI_ROLE_MOLD && of_worker)
                atomic_fetch_add(&lab->promoted, 1);
            break;
        }
        case ORIBI_STEP_HOOK:
            lab_run_hook(step);
            break;
        case ORIBI_STEP_LOAD:
            load(p);
            break;
        case ORIBI_STEP_OPEN:
            open_worker(p);
            break;
        case ORIBI_STEP_RUN:
            run_worker(p);
            break;
        case ORIBI_STEP_EXIT: {
            int code = step->code;
            if (step->at_once)
                _exit(code);
            oribi_process_destroy(p);
            return code;
        }
        case ORIBI_STEP_TRAPPED:
        case ORIBI_STEP_DONE:
            break; /* a server has none */
        }
    }
}

static char *set(char *text)
{
    return text[0] ? text : NULL;
}

/* Sets the options, as a binding's command does first, before it opens sockets. */
static void read_config(struct oribi_options *options)
{
    oribi_options_init(options);
    options->workers = lab->workers;
    options->boot_timeout_ms = lab->boot_timeout_ms;
    options->shutdown_timeout_ms = lab->shutdown_timeout_ms;
    options->err_respawn_interval_ms = lab->err_respawn_interval_ms;
    options->memory_max = lab->memory_max;
    options->age_max_ms = lab->age_max_ms;
    options->drain_delay_ms = lab->drain_delay_ms;
    options->roll_max_unavailable = lab->roll_max;
    options->refork_after = lab->refork_after;
    options->daemonize = lab->daemonize;
    options->user = set(lab->user);
    options->pid_file = set(lab->pid_file);
    options->control = set(lab->control);
    options->access_log = NULL;
}

static int serve(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options options;
    struct oribi_listeners *listeners = oribi_mem_alloc(1, sizeof(*listeners));
    struct oribi_process *p;
    struct oribi_process_setup setup = {.options = &options, .listeners = listeners, .program = "test"};
    if (lab->config_broken)
        return lab_fail_start("the config is broken");
    read_config(&options);
    for (int i = 0; i < 2; i++)
        if (lab->bind[i][0] && oribi_options_set(&options, "bind", lab->bind[i], error) < 0)
            return lab_fail_start(error);
    if (lab->bind[0][0] && oribi_listeners_open(listeners, &options, error) < 0)
        return lab_fail_start(error);
    if (oribi_process_create(&setup, &p, error) < 0)
        return lab_fail_start(error);
    return drive(p);
}

/* --- the test's side --- */

void lab_prepare(uint32_t workers)
{
    memset(lab, 0, sizeof(*lab));
    lab->workers = workers;
    lab->boot_timeout_ms = 10000;
    lab->shutdown_timeout_ms = 10000;
    lab->err_respawn_interval_ms = 10;
    if (ftruncate(lab_log_fd, 0) < 0 || lseek(lab_log_fd, 0, SEEK_SET) < 0)
        fail("the log can be emptied");
}

pid_t lab_start(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid > 0)
        return pid;
    if (dup2(lab_log_fd, STDERR_FILENO) < 0)
        _exit(99);
    (void)execl(self_path, self_path, "serve", (char *)NULL);
    _exit(98);
}

char *lab_log_text(void)
{
    static char text[65536];
    ssize_t n = pread(lab_log_fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

bool lab_logged(const char *words)
{
    return strstr(lab_log_text(), words) != NULL;
}

int lab_ended(pid_t pid)
{
    int status = -1;
    int64_t end = oribi_clock_ms() + DEADLINE_MS;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (oribi_clock_ms() > end) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        lab_pause_ms(1);
    }
    return status;
}

bool lab_alone(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        continue;
    return pid < 0 && errno == ECHILD;
}

bool lab_gone(pid_t pid)
{
    (void)waitpid(pid, NULL, WNOHANG); /* it may have become ours */
    return kill(pid, 0) < 0 && errno == ESRCH;
}

void lab_main(int argc, char **argv)
{
    const char *fd_text = getenv("LAB_FD");
    int fd = fd_text ? (int)strtol(fd_text, NULL, 10) : memfd_create("lab", 0);
    char number[16];
    if (fd < 0 || (!fd_text && ftruncate(fd, sizeof(*lab)) < 0))
        exit(skip_all("no shared memory"));
    lab = mmap(NULL, sizeof(*lab), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (lab == MAP_FAILED)
        exit(skip_all("no shared memory"));
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        _exit(serve());
    snprintf(number, sizeof(number), "%d", fd);
    if (setenv("LAB_FD", number, 1) < 0 || oribi_os_temp_file(&lab_log_fd) < 0 ||
        fcntl(lab_log_fd, F_SETFL, O_APPEND) < 0)
        exit(skip_all("no temporary file"));
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        exit(skip_all("no child subreaper on this system"));
    ssize_t n = readlink("/proc/self/exe", self_path, sizeof(self_path) - 1);
    if (n <= 0)
        exit(skip_all("no /proc"));
    self_path[n] = '\0';
    (void)signal(SIGPIPE, SIG_IGN);
}

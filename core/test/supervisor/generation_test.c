/* Reload, upgrade, recycling, refork and the control socket with real processes, and clients that must not notice. */
#include "supervisor/generation.c"

#include "supervisor/control_socket.h"
#include "supervisor/lab.h"

#include "oribi/supervisor/control.h"
#include "system.h"

#include <sys/socket.h>
#include <sys/un.h>

static char folder[64]; /* of this test's sockets and files */

static void in_folder(char *dst, size_t cap, const char *name)
{
    snprintf(dst, cap, "%s/%s", folder, name);
}

static void prepare_listening(uint32_t workers)
{
    lab_prepare(workers);
    snprintf(lab->bind[0], sizeof(lab->bind[0]), "unix://%s/s", folder);
    in_folder(lab->control, sizeof(lab->control), "ctl");
}

static int ask(const char *command, char *answer, size_t cap)
{
    struct oribi_buf out = {0};
    int code = oribi_control_request(lab->control, command, &out);
    snprintf(answer, cap, "%.*s", (int)out.len, out.p ? out.p : "");
    oribi_buf_deinit(&out);
    return code;
}

static int ask_quietly(const char *command)
{
    char answer[4096];
    return ask(command, answer, sizeof(answer));
}

/* One request to the socket `name`: the generation that answered, 0 when nobody listens, -1 when a connection was
 * taken and not answered. */
static int request(const char *name)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    char text[16] = "";
    in_folder(where.sun_path, sizeof(where.sun_path), name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval patience = {10, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
        close(fd);
        return 0;
    }
    bool answered = write(fd, "x", 1) == 1 && read(fd, text, sizeof(text) - 1) > 0;
    close(fd);
    return answered ? (int)strtol(text, NULL, 10) : -1;
}

struct clients {
    pid_t pid;
    int fd; /* gives how many requests were lost, at the end */
};

/* A client that asks without pause until it gets SIGTERM. */
static _Atomic int client_told;

static void on_term(int number)
{
    atomic_store(&client_told, 1);
}

static struct clients start_client(void)
{
    int fds[2];
    struct clients client = {-1, -1};
    if (pipe2(fds, O_CLOEXEC) < 0)
        return client;
    fflush(stdout);
    client.pid = fork();
    if (client.pid == 0) {
        int counts[2] = {0, 0};
        struct sigaction action = {.sa_handler = on_term};
        (void)sigaction(SIGTERM, &action, NULL);
        while (!atomic_load(&client_told)) {
            bool answered = request("s") > 0;
            if (answered || !atomic_load(&client_told)) /* the signal cuts the last one short */
                counts[answered]++;
        }
        _exit(write(fds[1], counts, sizeof(counts)) == sizeof(counts) ? 0 : 1);
    }
    close(fds[1]);
    client.fd = fds[0];
    return client;
}

static void end_client(struct clients client, int *lost, int *served)
{
    int counts[2] = {-1, 0};
    (void)kill(client.pid, SIGTERM);
    ok(read(client.fd, counts, sizeof(counts)) == sizeof(counts));
    close(client.fd);
    (void)waitpid(client.pid, NULL, 0);
    *lost = counts[0];
    *served = counts[1];
}

static void stop_all(pid_t pid)
{
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_hup_brings_a_new_generation_and_loses_nothing(void)
{
    prepare_listening(3);
    pid_t pid = lab_start();
    until(lab_logged("listening on unix://"));
    struct clients client = start_client();
    for (int generation = 2; generation <= 5; generation++) {
        char words[64];
        (void)kill(pid, SIGHUP);
        snprintf(words, sizeof(words), "reload done: 3 workers of generation %d", generation);
        until(lab_logged(words));
        until(request("s") == generation);
    }
    int lost;
    int served;
    end_client(client, &lost, &served);
    ok_eq(lost, 0);
    ok(served > 0);
    ok_eq(atomic_load(&lab->hooks_reload), 4);
    ok_eq(atomic_load(&lab->mold_count), 5);
    stop_all(pid);
    ok_eq(request("s"), 0);
}

static void test_code_that_does_not_load_changes_nothing(void)
{
    char answer[512];
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    atomic_store(&lab->load_fails, 1);
    ok_eq(ask("reload", answer, sizeof(answer)), 1);
    is_str(answer, "the application did not load: no such file\n");
    ok(lab_logged("the application did not load: no such file"));
    ok(lab_logged("reload failed, generation 1 goes on serving"));
    ok_eq(request("s"), 1);
    ok_eq(atomic_load(&lab->hooks_exit), 0);
    atomic_store(&lab->load_fails, 0);
    ok_eq(ask("reload", answer, sizeof(answer)), 0);
    is_str(answer, "generation 3, 2 workers\n");
    until(request("s") == 3);
    stop_all(pid);
}

static void test_a_broken_config_changes_nothing(void)
{
    char answer[512];
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    lab->config_broken = 1;
    ok_eq(ask("reload", answer, sizeof(answer)), 1);
    is_str(answer, "the application did not load: the config is broken\n");
    ok(lab_logged("test: the config is broken\n"));
    ok_eq(request("s"), 1);
    stop_all(pid);
}

static void test_a_first_worker_that_fails_changes_nothing(void)
{
    char answer[512];
    prepare_listening(3);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 3);
    atomic_store(&lab->workers_fail, 1);
    ok_eq(ask("reload", answer, sizeof(answer)), 1);
    ok_named(strstr(answer, "ended before it was ready: exit code 1: no database\n") != NULL, "%s", answer);
    ok(lab_logged("could not start: no database"));
    until(atomic_load(&lab->mold_count) == 2 && lab_gone(atomic_load(&lab->mold_pids[1])));
    ok_eq(request("s"), 1);
    ok(!lab_gone(atomic_load(&lab->mold_pids[0])));
    stop_all(pid);
}

static void test_a_reload_takes_the_new_config(void)
{
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    lab->workers = 4;
    snprintf(lab->bind[1], sizeof(lab->bind[1]), "unix://%s/second", folder);
    ok_eq(ask_quietly("reload"), 0);
    ok(lab_logged("reload done: 4 workers of generation 2"));
    ok(lab_logged("listening on unix://"));
    until(request("second") == 2);

    /* The second reload finds the second socket open; the first is given up. */
    snprintf(lab->bind[0], sizeof(lab->bind[0]), "%s", lab->bind[1]);
    lab->bind[1][0] = '\0';
    ok_eq(ask_quietly("reload"), 0);
    ok(lab_logged("no longer listening on unix://"));
    until(request("second") == 3);
    until(request("s") == 0);
    stop_all(pid);
    ok_eq(request("second"), 0);
}

/* Those that come take the places of those that go. */
static void test_a_reload_names_each_address_that_comes_or_goes(void)
{
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    snprintf(lab->bind[0], sizeof(lab->bind[0]), "unix://%s/second", folder);
    snprintf(lab->bind[1], sizeof(lab->bind[1]), "unix://%s/third", folder);
    ok_eq(ask_quietly("reload"), 0);
    ok(lab_logged("/s\n") && lab_logged("/second as well") && lab_logged("/third as well"));
    until(request("second") == 2 && request("third") == 2);
    stop_all(pid);
}

/* A client of its own process, which ends with the code of the answer. */
static pid_t ask_beside(const char *command)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(ask_quietly(command));
    return pid;
}

static void test_who_asks_during_a_reload_hears_of_the_next_one(void)
{
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on") && request("s") == 1);
    atomic_store(&lab->load_fails, 3);
    pid_t first = ask_beside("reload");
    until(atomic_load(&lab->mold_count) == 2);
    pid_t second = ask_beside("reload");
    until(lab_logged("another one follows it"));
    atomic_store(&lab->load_fails, 0);
    (void)kill(atomic_load(&lab->mold_pids[1]), SIGKILL);
    ok_eq(lab_ended(first), 1 << 8);
    ok_eq(lab_ended(second), 0);
    ok_eq(request("s"), 3);
    stop_all(pid);
}

static void test_who_hears_that_a_reload_is_done_finds_the_new_code(void)
{
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on") && request("s") == 1);
    for (int generation = 2; generation < 22; generation++) {
        ok_eq(ask_quietly("reload"), 0);
        ok_eq(request("s"), generation);
    }
    stop_all(pid);
}

/* It lets others in as soon as it runs again. It is waited for, but not for ever: it may be in a long call. */
static pid_t change_beside_a_deaf_worker(const char *word)
{
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on") && request("s") == 1);
    pid_t old = atomic_load(&lab->worker_pids[0]);
    (void)kill(old, SIGSTOP);
    int64_t began_ms = oribi_clock_ms();
    ok_eq(ask_quietly(word), 0);
    ok(oribi_clock_ms() - began_ms >= 1000);
    (void)kill(old, SIGCONT);
    until(lab_gone(old));
    return pid;
}

static void test_an_old_worker_that_does_not_hear_is_waited_for_before_a_reload_is_done(void)
{
    pid_t pid = change_beside_a_deaf_worker("reload");
    ok_eq(request("s"), 2);
    stop_all(pid);
}

static void test_an_old_worker_that_does_not_hear_is_waited_for_before_an_upgrade_is_done(void)
{
    pid_t pid = change_beside_a_deaf_worker("upgrade");
    ok_eq(lab_ended(pid), 0);
    ok_eq(request("s"), 1);
    ok_eq(ask_quietly("stop"), 0);
    until(lab_alone());
}

static void test_a_failed_reload_leaves_no_socket_file(void)
{
    char path[108];
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    atomic_store(&lab->load_fails, 1);
    snprintf(lab->bind[1], sizeof(lab->bind[1]), "unix://%s/second", folder);
    ok_eq(ask_quietly("reload"), 1);
    in_folder(path, sizeof(path), "second");
    until(access(path, F_OK) < 0);
    ok_eq(request("s"), 1);
    stop_all(pid);
}

static void test_a_killed_mold_of_a_later_generation_comes_back(void)
{
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    ok_eq(ask_quietly("reload"), 0);
    until(atomic_load(&lab->worker_count) == 4); /* they count themselves after they have told that they are ready */
    (void)kill(atomic_load(&lab->mold_pids[1]), SIGKILL);
    until(lab_logged("its workers live on"));
    (void)kill(atomic_load(&lab->worker_pids[3]), SIGKILL);
    until(atomic_load(&lab->worker_count) == 5);
    until(request("s") == 2);
    stop_all(pid);
}

static void test_a_killed_supervisor_takes_a_later_generation_along(void)
{
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    ok_eq(ask_quietly("reload"), 0);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
}

static void test_a_killed_supervisor_takes_a_loading_generation_along(void)
{
    if (!only_on_linux("the end of a parent is no signal"))
        return;
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    atomic_store(&lab->load_fails, 3);
    (void)kill(pid, SIGHUP);
    until(atomic_load(&lab->mold_count) == 2);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
}

/* --- upgrade --- */

static void test_usr2_hands_over_and_loses_nothing(void)
{
    char text[32] = "";
    prepare_listening(2);
    in_folder(lab->pid_file, sizeof(lab->pid_file), "pid");
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    struct clients client = start_client();
    for (int i = 0; i < 3; i++) {
        pid_t old = atomic_load(&lab->serve_pid);
        (void)kill(old, SIGUSR2);
        until(atomic_load(&lab->serve_pid) != old);
        if (i == 0)
            ok_eq(lab_ended(pid), 0);
        until(lab_gone(old));
    }
    int lost;
    int served;
    end_client(client, &lost, &served);
    ok_eq(lost, 0);
    ok(served > 0);
    pid_t last = atomic_load(&lab->serve_pid);
    int fd = open(lab->pid_file, O_RDONLY);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    ok_eq((int)strtol(text, NULL, 10), last);
    ok_eq(ask_quietly("status"), 0);
    ok_eq(ask_quietly("stop"), 0);
    until(lab_alone());
    ok(access(lab->pid_file, F_OK) < 0);
    ok_eq(request("s"), 0);
}

static void test_a_successor_that_fails_leaves_everything(void)
{
    char answer[512];
    char old_path[120];
    prepare_listening(2);
    in_folder(lab->pid_file, sizeof(lab->pid_file), "pid");
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    atomic_store(&lab->load_fails, 1);
    ok_eq(ask("upgrade", answer, sizeof(answer)), 1);
    is_str(answer, "the successor ended: exit code 1: the application did not load: no such file\n");
    ok_eq(request("s"), 1);
    ok(access(lab->pid_file, F_OK) == 0);
    snprintf(old_path, sizeof(old_path), "%s.old", lab->pid_file);
    ok(access(old_path, F_OK) < 0);
    ok_eq(ask_quietly("status"), 0); /* the control socket is ours again */

    lab->config_broken = 1;
    ok_eq(ask("upgrade", answer, sizeof(answer)), 1);
    is_str(answer, "the successor ended: exit code 1: the config is broken\n");
    ok_eq(request("s"), 1);
    lab->config_broken = 0;
    atomic_store(&lab->load_fails, 0);
    ok_eq(ask_quietly("upgrade"), 0);
    ok_eq(lab_ended(pid), 0);
    ok_eq(request("s"), 1);
    ok_eq(ask_quietly("stop now"), 0);
    until(lab_alone());
}

/* USR2 twice, and a client beside: a client that comes too late hears so, and what is under way goes on. */
static void test_an_upgrade_is_not_disturbed_by_another_wish(void)
{
    prepare_listening(1);
    in_folder(lab->pid_file, sizeof(lab->pid_file), "pid");
    pid_t pid = lab_start();
    until(lab_logged("listening on") && request("s") == 1);
    atomic_store(&lab->load_fails, 3);
    pid_t first = ask_beside("upgrade");
    until(atomic_load(&lab->mold_count) == 2);
    (void)kill(pid, SIGUSR2);
    until(lab_logged("no upgrade: one is under way"));
    atomic_store(&lab->load_fails, 0);
    ok_eq(lab_ended(first), 0);
    ok_eq(lab_ended(pid), 0);
    until(request("s") == 1);
    pid_t successor = atomic_load(&lab->serve_pid);
    (void)kill(successor, SIGTERM);
    until(lab_gone(successor));
    until(lab_alone());
}

static void test_an_upgrade_works_for_a_daemon(void)
{
    prepare_listening(1);
    lab->daemonize = 1;
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 0);
    until(atomic_load(&lab->serve_pid) != 0);
    pid_t old = atomic_load(&lab->serve_pid);
    ok_eq(ask_quietly("upgrade"), 0);
    until(lab_gone(old));
    ok_eq(request("s"), 1);
    ok_eq(ask_quietly("stop"), 0);
    until(lab_alone());
}

/* --- recycling --- */

static void test_memory_max_replaces_a_worker_and_loses_nothing(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    prepare_listening(2);
    lab->memory_max = 24 << 20;
    atomic_store(&lab->ballast_mb, 40);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    until(atomic_load(&lab->worker_count) == 2);
    atomic_store(&lab->ballast_mb, 0);
    struct clients client = start_client();
    until(atomic_load(&lab->hooks_exit) == 2);
    is_str(lab->last_reason, "memory_max");
    ok(lab_logged("memory_max is 24 MB: it is replaced"));
    int lost;
    int served;
    end_client(client, &lost, &served);
    ok_eq(lost, 0);
    until(atomic_load(&lab->worker_count) == 4);
    stop_all(pid);
}

static void test_age_max_replaces_workers(void)
{
    prepare_listening(2);
    lab->age_max_ms = 100;
    pid_t pid = lab_start();
    until(atomic_load(&lab->hooks_exit) >= 2);
    is_str(lab->last_reason, "age_max");
    stop_all(pid);
}

static void test_a_warm_worker_becomes_the_mold(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    prepare_listening(3);
    lab->refork_after = 10;
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    until(atomic_load(&lab->worker_count) == 3);
    struct clients client = start_client();
    atomic_store(&lab->pretend_requests, 10);
    until(atomic_load(&lab->promoted) == 1);
    until(lab_logged("after the refork"));
    ok(lab_gone(atomic_load(&lab->mold_pids[0])));
    ok(lab_logged("memory of a worker before the refork"));
    int lost;
    int served;
    end_client(client, &lost, &served);
    ok_eq(lost, 0);
    until(atomic_load(&lab->worker_count) == 6); /* they count themselves after they have told that they are ready */
    ok_eq(atomic_load(&lab->hooks_refork), 1);
    int before = atomic_load(&lab->worker_count); /* and it forks workers as any mold does */
    (void)kill(atomic_load(&lab->worker_pids[before - 1]), SIGKILL);
    until(atomic_load(&lab->worker_count) == before + 1);
    ok_eq(request("s"), 1);
    stop_all(pid);
}

/* --- drain_delay --- */

static void test_drain_delay_serves_on_for_a_while(void)
{
    prepare_listening(1);
    lab->drain_delay_ms = 300;
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    (void)kill(pid, SIGTERM);
    until(lab_logged("stopping in 300 ms"));
    ok_eq(request("s"), 1);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

/* --- control --- */

static void test_control_commands(void)
{
    char answer[4096];
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    until(atomic_load(&lab->worker_count) == 2);
    ok_eq(ask("workers +1", answer, sizeof(answer)), 0);
    is_str(answer, "3 workers, were 2\n");
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(ask("workers 1", answer, sizeof(answer)), 0);
    until(atomic_load(&lab->hooks_exit) == 2);
    ok_eq(ask("workers 0", answer, sizeof(answer)), 1);
    is_str(answer, "workers: from 1 to 10\n");
    ok_eq(ask("workers 11", answer, sizeof(answer)), 1);
    ok_eq(ask("workers 10", answer, sizeof(answer)), 0);
    ok_eq(ask("workers many", answer, sizeof(answer)), 1);
    ok_eq(ask("dance", answer, sizeof(answer)), 1);
    ok(strncmp(answer, "commands: status, ", 18) == 0);
    ok_eq(ask("reopen", answer, sizeof(answer)), 0);
    ok_eq(ask("stop", answer, sizeof(answer)), 0);
    is_str(answer, "stopped\n");
    ok_eq(lab_ended(pid), 0);
    ok_eq(ask("status", answer, sizeof(answer)), 2);
    until(lab_alone());
}

static void test_status_says_what_goes_on(void)
{
    char answer[8192];
    char want[64];
    prepare_listening(2);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    until(atomic_load(&lab->worker_count) == 2);
    until(ask("status", answer, sizeof(answer)) == 0 && strstr(answer, "2 of 2 workers"));
    snprintf(want, sizeof(want), "test, pid %d, serving, generation 1", pid);
    ok(strncmp(answer, want, strlen(want)) == 0);
    ok(strstr(answer, "listening on unix://") != NULL);
    ok_eq(ask("status json", answer, sizeof(answer)), 0);
    ok(strstr(answer, "\"state\":\"serving\",\"generation\":1,\"workers\":2,\"workers_wanted\":2") != NULL);
    ok(answer[0] == '{' && strcmp(answer + strlen(answer) - 3, "]}\n") == 0);
    stop_all(pid);
}

static void test_a_control_socket_in_use_keeps_a_second_server_out(void)
{
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    lab->bind[0][0] = '\0';
    pid_t second = lab_start();
    ok_eq(lab_ended(second), 1 << 8);
    ok(lab_logged("belongs to a running server\n"));
    ok_eq(ask_quietly("status"), 0);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
    ok(access(lab->control, F_OK) == 0); /* left behind by the kill, and stale */
    pid = lab_start();
    until(ask_quietly("status") == 0);
    until(lab_logged("started, 1 worker,"));
    stop_all(pid);
}

static int connect_control(void)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    memcpy(where.sun_path, lab->control, strlen(lab->control));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&where, sizeof(where)) < 0 ? -1 : fd;
}

/* One too many is refused; the last silent client may have been that one itself, if the place of an earlier question
 * was not free yet. */
static bool full(int *last)
{
    char answer[64];
    if (recv(*last, answer, sizeof(answer), MSG_DONTWAIT) >= 0) {
        close(*last);
        *last = connect_control();
    }
    return ask_quietly("status") == 1;
}

static void test_control_is_not_hurt_by_bad_clients(void)
{
    prepare_listening(1);
    pid_t pid = lab_start();
    until(lab_logged("listening on"));
    int silent[ORIBI__CONTROL_CLIENTS_MAX];
    for (int i = 0; i < ORIBI__CONTROL_CLIENTS_MAX - 1; i++)
        ok((silent[i] = connect_control()) >= 0);
    ok_eq(ask_quietly("status"), 0);
    silent[ORIBI__CONTROL_CLIENTS_MAX - 1] = connect_control();
    until(full(&silent[ORIBI__CONTROL_CLIENTS_MAX - 1]));
    close(silent[0]);
    until(ask_quietly("status") == 0);
    char text[ORIBI__CONTROL_LINE_CAP + 8];
    char answer[64] = "";
    memset(text, 'x', sizeof(text));
    ok(write(silent[1], text, sizeof(text)) == sizeof(text));
    ok(read(silent[1], answer, sizeof(answer) - 1) > 0);
    is_str(answer, "error too long\n");
    for (int i = 1; i < ORIBI__CONTROL_CLIENTS_MAX; i++)
        close(silent[i]);
    stop_all(pid);
}

/* --- the service manager --- */

static char heard[65536]; /* every message so far */

static bool was_told(int fd, const char *words)
{
    char message[512];
    ssize_t n;
    while ((n = recv(fd, message, sizeof(message) - 1, MSG_DONTWAIT)) > 0) {
        size_t used = strlen(heard);
        snprintf(heard + used, sizeof(heard) - used, "%.*s", (int)n, message);
    }
    return strstr(heard, words) != NULL;
}

static void test_the_service_manager_is_told(void)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    char words[64];
    in_folder(where.sun_path, sizeof(where.sun_path), "notify");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ok(bind(fd, (struct sockaddr *)&where, sizeof(where)) == 0);
    (void)setenv("NOTIFY_SOCKET", where.sun_path, 1);
    (void)setenv("WATCHDOG_USEC", "40000", 1);
    prepare_listening(2);
    pid_t pid = lab_start();
    until(was_told(fd, "READY=1\nSTATUS=listening on unix://"));
    heard[0] = '\0';
    until(was_told(fd, "WATCHDOG=1"));
    ok_eq(ask_quietly("reload"), 0);
    until(was_told(fd, "RELOADING=1\nMONOTONIC_USEC="));
    until(was_told(fd, "READY=1\nSTATUS=generation 2"));
    ok_eq(ask_quietly("upgrade"), 0);
    pid_t last = atomic_load(&lab->serve_pid);
    snprintf(words, sizeof(words), "MAINPID=%d\n", last);
    until(was_told(fd, words));
    ok_eq(lab_ended(pid), 0);
    ok(!was_told(fd, "STOPPING=1")); /* the service goes on */
    heard[0] = '\0';
    until(was_told(fd, "WATCHDOG=1"));
    ok_eq(ask_quietly("stop"), 0);
    until(was_told(fd, "STOPPING=1"));
    until(lab_alone());
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    close(fd);
    (void)unlink(where.sun_path);
}

/* --- versions --- */

static void test_a_mold_of_another_layout_says_what_to_do(void)
{
    struct oribi__handed_down from;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    (void)setenv("ORIBI_MOLD", "1 2 3 4 5 6 7 8 9,10", 1);
    ok(oribi_mold_inherited());
    ok_eq(oribi__handed_down_read(&from, error), ORIBI_EINVAL);
    is_str(error, "the running server is of another version: an upgrade (USR2) replaces it, a reload (HUP) cannot");
    ok(!oribi_mold_inherited());
    (void)setenv("ORIBI_MOLD", "nonsense", 1);
    ok_eq(oribi__handed_down_read(&from, error), ORIBI_EINVAL);
    is_str(error, "ORIBI_MOLD cannot be read: \"nonsense\"");
}

int main(int argc, char **argv)
{
    lab_main(argc, argv);
    snprintf(folder, sizeof(folder), "/tmp/oribi-test-%d", getpid());
    if (mkdir(folder, 0700) < 0)
        return skip_all("no folder for sockets");
    test_hup_brings_a_new_generation_and_loses_nothing();
    test_code_that_does_not_load_changes_nothing();
    test_a_broken_config_changes_nothing();
    test_a_first_worker_that_fails_changes_nothing();
    test_a_reload_takes_the_new_config();
    test_a_reload_names_each_address_that_comes_or_goes();
    test_who_asks_during_a_reload_hears_of_the_next_one();
    test_who_hears_that_a_reload_is_done_finds_the_new_code();
    test_an_old_worker_that_does_not_hear_is_waited_for_before_a_reload_is_done();
    test_an_old_worker_that_does_not_hear_is_waited_for_before_an_upgrade_is_done();
    test_a_failed_reload_leaves_no_socket_file();
    test_a_killed_mold_of_a_later_generation_comes_back();
    test_a_killed_supervisor_takes_a_later_generation_along();
    test_a_killed_supervisor_takes_a_loading_generation_along();
    test_usr2_hands_over_and_loses_nothing();
    test_a_successor_that_fails_leaves_everything();
    test_an_upgrade_is_not_disturbed_by_another_wish();
    test_an_upgrade_works_for_a_daemon();
    test_memory_max_replaces_a_worker_and_loses_nothing();
    test_age_max_replaces_workers();
    test_a_warm_worker_becomes_the_mold();
    test_drain_delay_serves_on_for_a_while();
    test_control_commands();
    test_status_says_what_goes_on();
    test_a_control_socket_in_use_keeps_a_second_server_out();
    test_control_is_not_hurt_by_bad_clients();
    test_the_service_manager_is_told();
    test_a_mold_of_another_layout_says_what_to_do();
    char path[96]; /* what a killed supervisor cannot remove */
    in_folder(path, sizeof(path), "s");
    (void)unlink(path);
    in_folder(path, sizeof(path), "second");
    (void)unlink(path);
    ok_eq(rmdir(folder), 0);
    return done_testing();
}

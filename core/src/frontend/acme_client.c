/* The client of an order (acme_command, else uacme) as a child; see acme.h. Reading order: run, attend, words. */
#include "frontend/acme.h"
#include "frontend/os_confine.h"

#include "oribi/base/clock.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/frontend_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DATA_MAX = 1024 * 1024 * 1024, /* bytes of a client in memory: enough for lego and certbot */
    ARGUMENTS_MAX = 16,            /* behind the words of the command */
    NOT_FOUND = 127,               /* exit codes of a child that runs no client, as a shell's */
    NOT_ALLOWED = 126,
    LOOK_MS = 200,                     /* at a client whose output has ended */
    KEPT = ORIBI__ACME_OUTPUT_MAX / 4, /* of each end of an output that is too long */
    READS_MAX = 256,                   /* of output and hooks after its end: more than a pipe holds */
};

struct running {
    pid_t pid;
    int output_fd;
    int hook_fd;
    int asked[ORIBI_ACME_TOKENS_MAX]; /* sockets of hooks whose challenges the supervisor has not answered, in order */
    uint32_t asked_count;
    bool ended;
    int status;
    struct oribi_buf output;
};

/* --- its start --- */

extern char **environ;

static const int usual[] = {SIGINT,  SIGTERM, SIGQUIT, SIGHUP,   SIGUSR1, SIGUSR2,
                            SIGPIPE, SIGTTIN, SIGTTOU, SIGWINCH, SIGXFSZ, SIGCHLD};

/* Does a client need this variable? Names that end in `_`, or begin with it, stand for all of that kind. */
static bool is_for_client(const char *variable)
{
    static const char *const all[] = {"PATH",  "TZ",     "LANG",   "SSL_CERT_FILE", "SSL_CERT_DIR",
                                      "LC_",   "CURL_",  "UACME_", "LEGO_",         "ACME_",
                                      "ASAN_", "UBSAN_", "LSAN_",  "_proxy",        "_PROXY"};
    size_t n = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        size_t len = strlen(all[i]);
        bool ends = all[i][0] == '_';
        bool begins = all[i][len - 1] == '_';
        if (n >= len && (n == len || ends || begins) && memcmp(variable + (ends ? n - len : 0), all[i], len) == 0)
            return true;
    }
    return false;
}

/* Secrets of the application are in the environment of its server; the client's user is another one. */
static void reduce_environment(void)
{
    char **kept = environ;
    for (char **at = environ; *at; at++)
        if (is_for_client(*at))
            *kept++ = *at;
    *kept = NULL;
}

/* In the child. Descriptors are CLOEXEC by our rule, but the hook's. */
static void become(const struct oribi__acme_client *client, char **argv, int output_fd, int hook_fd, pid_t parent)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char number[16];
    sigset_t none;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)setsid();
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
        (void)signal(usual[i], SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)dup2(null, STDIN_FILENO);
    (void)dup2(output_fd, STDOUT_FILENO);
    (void)dup2(output_fd, STDERR_FILENO);
    if (client->user[0] && oribi_process_switch_user(client->user, NULL, error) < 0) {
        (void)fprintf(stderr, "acme_%s\n", error);
        _exit(NOT_ALLOWED);
    }
    int alive = oribi_os_signal_on_parent_death(SIGKILL, parent); /* a change of user undoes it */
    if (alive == ORIBI_ECLOSED)
        _exit(NOT_ALLOWED); /* nobody reads why */
    if (client->user[0])
        reduce_environment();
    if (client->hook && access(client->hook, X_OK) < 0) {
        (void)fprintf(stderr,
                      "the user of the client may not run %s: let that user enter its folders, or set acme_user\n",
                      client->hook);
        _exit(NOT_ALLOWED);
    }
    oribi_confine_data(DATA_MAX); /* an answer without an end takes all memory of uacme's else */
    (void)umask(077);
    (void)snprintf(number, sizeof(number), "%d", hook_fd);
    if (hook_fd >= 0)
        (void)fcntl(hook_fd, F_SETFD, 0);
    if (hook_fd >= 0 && setenv(ORIBI__ACME_HOOK, number, 1) < 0)
        _exit(NOT_ALLOWED);
    (void)execvp(argv[0], argv);
    int failed = errno;
    (void)fprintf(stderr, "%s: %s\n", argv[0], strerror(failed));
    _exit(failed == ENOENT ? NOT_FOUND : NOT_ALLOWED);
}

static int start(const struct oribi__acme_client *client, char **argv, struct running *running)
{
    int output[2] = {-1, -1};
    int hook[2] = {-1, -1};
    pid_t parent = getpid();
    if (oribi_os_pipe(output) < 0)
        return ORIBI_ESYS;
    (void)oribi_os_set_nonblock(output[1], false); /* the client expects to wait; it is open: cannot fail */
    if (oribi_os_socket_pair(oribi_os_record_type(false), false, hook) < 0) {
        oribi_os_close(output[0]);
        oribi_os_close(output[1]);
        return ORIBI_ESYS;
    }
    running->pid = fork();
    if (running->pid == 0)
        become(client, argv, output[1], hook[1], parent);
    oribi_os_close(output[1]);
    oribi_os_close(hook[1]);
    running->output_fd = output[0];
    running->hook_fd = hook[0];
    return running->pid < 0 ? ORIBI_ESYS : 0;
}

/* --- while it runs --- */

static void read_output(struct running *running)
{
    char room[4096];
    ssize_t n = oribi_os_read(running->output_fd, room, sizeof(room));
    if (n == ORIBI_AGAIN)
        return;
    if (n <= 0) {
        oribi_os_close(running->output_fd);
        running->output_fd = -1;
        return;
    }
    struct oribi_buf *output = &running->output;
    if (output->len + (size_t)n > ORIBI__ACME_OUTPUT_MAX) { /* the words of a failure come first or last */
        memmove(output->p + KEPT, output->p + output->len - KEPT, KEPT);
        output->len = 2 * (size_t)KEPT;
    }
    oribi_buf_append(output, room, (size_t)n);
}

/* Answers a hook through the socket that came with its challenge (-1: none came), so that no other hook hears it. */
static void answer(int fd, char kind)
{
    if (fd >= 0)
        (void)send(fd, &kind, 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* the hook may have ended */
    oribi_os_close(fd);
}

/* A challenge, which is the socket's until it is answered. What does not look like one is declined. */
static void take_challenge(const struct oribi__acme_client *client, struct running *running, char *line, size_t n,
                           int fd)
{
    char *space = strchr(line, ' ');
    bool good = space && running->asked_count < ORIBI_ACME_TOKENS_MAX;
    if (good)
        *space = '\0';
    good = good && oribi_acme_is_challenge(line + 1, space + 1);
    if (space)
        *space = ' ';
    if (good && send(client->supervisor_fd, line, n, MSG_NOSIGNAL) == (ssize_t)n)
        running->asked[running->asked_count++] = fd;
    else
        answer(fd, ORIBI_ACME_TOLD_FAILED);
}

/* A challenge of the hook's, or the end of one. */
static void read_hook(const struct oribi__acme_client *client, struct running *running)
{
    char line[ORIBI_ACME_MESSAGE_MAX + 1];
    int fd;
    ssize_t n = oribi__frontend_message_receive(running->hook_fd, line, sizeof(line) - 1, &fd);
    if (n <= 0) {
        if (n != ORIBI_AGAIN) {
            oribi_os_close(running->hook_fd);
            running->hook_fd = -1;
        }
        return;
    }
    line[n] = '\0';
    if (line[0] == ORIBI_ACME_SAYS_BEGIN) {
        take_challenge(client, running, line, (size_t)n, fd);
        return;
    }
    oribi_os_close(fd);
    if (line[0] == ORIBI_ACME_SAYS_END)
        (void)send(client->supervisor_fd, line, (size_t)n, MSG_NOSIGNAL); /* its end is seen by reading */
}

/* The supervisor answers challenges in their order. False: it has gone. */
static bool read_supervisor(const struct oribi__acme_client *client, struct running *running)
{
    char kind[ORIBI_ACME_MESSAGE_MAX];
    ssize_t n = recv(client->supervisor_fd, kind, sizeof(kind), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    if (running->asked_count == 0)
        return true;
    answer(running->asked[0], kind[0]);
    running->asked_count--;
    memmove(running->asked, running->asked + 1, running->asked_count * sizeof(running->asked[0]));
    return true;
}

/* Its process stays to be reaped, so that its number stays that of its group. */
static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Until the client has ended, its time is over or the supervisor has gone. 0, ORIBI_ETIMEOUT, ORIBI_ECLOSED. Its group
 * ends with it. A process that has left that group, and holds the output, does not hold us up. */
static int attend(const struct oribi__acme_client *client, struct running *running)
{
    for (;;) {
        struct pollfd items[] = {{.fd = running->output_fd, .events = POLLIN},
                                 {.fd = running->hook_fd, .events = POLLIN},
                                 {.fd = client->supervisor_fd, .events = POLLIN}};
        int64_t left_ms = client->until_ms - oribi_clock_ms();
        if (left_ms <= 0)
            return ORIBI_ETIMEOUT;
        if (has_ended(running->pid)) {
            (void)kill(-running->pid, SIGKILL); /* those that it has left in its group; there may be none */
            (void)oribi_process_reap(running->pid, true, &running->status);
            running->ended = true;
            for (int i = 0; i < READS_MAX && running->output_fd >= 0 && poll(items, 1, 0) == 1; i++)
                read_output(running);
            for (int i = 0; i < READS_MAX && running->hook_fd >= 0 && poll(items + 1, 1, 0) == 1; i++)
                read_hook(client, running); /* its hooks' last words: what frontends need not answer any more */
            return 0;
        }
        (void)poll(items, 3, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        if (items[0].revents)
            read_output(running);
        if (items[1].revents)
            read_hook(client, running);
        if (items[2].revents && !read_supervisor(client, running))
            return ORIBI_ECLOSED;
    }
}

static void end(struct running *running)
{
    if (running->pid > 0 && !running->ended) {
        (void)kill(-running->pid, SIGKILL); /* its group, with a hook */
        (void)kill(running->pid, SIGKILL);  /* before it has made that */
        (void)oribi_process_await(running->pid, &running->status);
        (void)oribi_process_reap(running->pid, true, &running->status);
    }
    while (running->asked_count > 0)
        oribi_os_close(running->asked[--running->asked_count]);
    oribi_os_close(running->output_fd);
    oribi_os_close(running->hook_fd);
}

/* --- its words --- */

/* The end of a string of JSON, NULL: it has none. A quote behind a backslash is part of it. */
static const char *string_end(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        p += *p == '\\' && p + 1 < end;
    return p < end ? p : NULL;
}

/* The text of the last "name": "text" in the output; as JSON has it, escapes stay. */
static struct oribi_slice last_text(struct oribi_slice output, const char *name)
{
    struct oribi_slice found = {NULL, 0};
    size_t n = strlen(name);
    const char *end = output.p + output.n;
    for (const char *p = output.p; p < end;) {
        const char *at = oribi_os_memmem(p, (size_t)(end - p), name, n);
        if (!at)
            break;
        p = at + n;
        while (p < end && (*p == ' ' || *p == ':'))
            p++;
        const char *from = p + 1;
        const char *to = p < end && *p == '"' && from < end ? string_end(from, end) : NULL;
        if (to)
            found = oribi_slice(from, (size_t)(to - from));
    }
    return found;
}

/* The line that says what has failed; else the last one. */
static struct oribi_slice telling_line(struct oribi_slice output)
{
    struct oribi_slice last = {output.p, 0};
    struct oribi_slice failed = {NULL, 0};
    for (size_t at = 0; at < output.n;) {
        const char *newline = memchr(output.p + at, '\n', output.n - at);
        size_t n = newline ? (size_t)(newline - output.p) - at : output.n - at;
        struct oribi_slice line = {output.p + at, n};
        if (n > 7 && memcmp(line.p, "uacme: ", 7) == 0)
            line = oribi_slice(line.p + 7, n - 7);
        if (line.n > 0)
            last = line;
        if (oribi_os_memmem(line.p, line.n, "failed: ", 8))
            failed = line;
        at += n + 1;
    }
    return failed.n ? failed : last;
}

/* Advice for the kinds of problems that an operator can do something about (RFC 8555 6.7). */
static const char *todo_for(struct oribi_slice type)
{
    static const struct {
        const char *type;
        const char *todo;
    } all[] = {
        {"unauthorized", "do all names lead to this server, at port 80?"},
        {"connection", "is port 80 of this server open to the authority?"},
        {"dns", "has the name an A or AAAA record that leads here?"},
        {"caa", "allow the authority in the name's CAA record"},
        {"rateLimited", "the authority limits orders: wait"},
        {"rejectedIdentifier", "the authority issues nothing for that name"},
        {"externalAccountRequired", "the authority wants an account of its own: set acme_command"},
        {"invalidContact", "correct the email of acme"},
        {"userActionRequired", "read the authority's new terms"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (type.n == strlen(all[i].type) && memcmp(type.p, all[i].type, type.n) == 0)
            return all[i].todo;
    return "";
}

/* For a client that did not get an answer: as libcurl says it. */
static const char *todo_for_line(struct oribi_slice line)
{
    static const struct {
        const char *words;
        const char *todo;
    } all[] = {
        {"SSL peer certificate", "does this machine trust the host of acme_directory (update-ca-certificates)?"},
        {"Couldn't resolve host", "can this machine resolve the host of acme_directory?"},
        {"Couldn't connect", "can this machine reach the host of acme_directory?"},
        {"Timeout was reached", "can this machine reach the host of acme_directory?"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (line.n && oribi_os_memmem(line.p, line.n, all[i].words, strlen(all[i].words)))
            return all[i].todo;
    return "";
}

void oribi__acme_client_words(struct oribi_slice output, char *reason)
{
    static const char prefix[] = "urn:ietf:params:acme:error:";
    struct oribi_slice detail = last_text(output, "\"detail\"");
    struct oribi_slice type = last_text(output, "\"type\"");
    size_t known = sizeof(prefix) - 1;
    type = type.n > known && memcmp(type.p, prefix, known) == 0 ? oribi_slice(type.p + known, type.n - known)
                                                                : oribi_slice("", 0);
    struct oribi_slice line = detail.n ? detail : telling_line(output);
    const char *todo = detail.n || type.n ? todo_for(type) : todo_for_line(line);
    int room = ORIBI_ACME_REASON_MAX - 110;
    int n = snprintf(reason, ORIBI_ACME_REASON_MAX + 1, "%.*s%s%.*s%s%s", type.n < 40 ? (int)type.n : 40,
                     type.n ? type.p : "", type.n && line.n ? ": " : "", line.n < (size_t)room ? (int)line.n : room,
                     line.n ? line.p : "", *todo ? "; " : "", todo);
    char *to = reason;
    for (const char *p = reason; *p; p++) {
        if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
            continue; /* of JSON */
        *to++ = *p < ' ' || *p > '~' ? '?' : *p;
    }
    *to = '\0';
    if (n == 0)
        (void)snprintf(reason, ORIBI_ACME_REASON_MAX + 1, "the ACME client has failed without a word");
}

/* --- one run --- */

static int tell(char *reason, int code, const char *format, const char *word)
{
    char text[ORIBI_ACME_REASON_MAX + 1];
    (void)snprintf(text, sizeof(text), format, word); /* cut when longer; `word` may be `reason` */
    memcpy(reason, text, sizeof(text));
    return code;
}

static int judge(const char *name, const struct running *running, char *reason)
{
    struct oribi_slice output = {running->output.p, running->output.len};
    bool exits = WIFEXITED(running->status);
    if (exits && WEXITSTATUS(running->status) == 0)
        return 0;
    if (exits && WEXITSTATUS(running->status) == NOT_FOUND)
        return tell(reason, ORIBI_EINVAL, "%.60s is not installed: apt-get install uacme, or set acme_command", name);
    if (!exits)
        return tell(reason, ORIBI_EINVAL, "%.60s was killed", name);
    if (output.n && oribi_os_memmem(output.p, output.n, "failed to access", 16))
        return 1;
    if (output.n && oribi_os_memmem(output.p, output.n, "no account associated", 21))
        return 1;
    oribi__acme_client_words(output, reason);
    return ORIBI_EINVAL;
}

/* `arguments`: NULL-terminated, behind the words of the command. */
static int run(const struct oribi__acme_client *client, const char *const *arguments, char *reason)
{
    char words[1024];
    char *argv[ORIBI__ACME_COMMAND_WORDS_MAX + ARGUMENTS_MAX + 1];
    char *rest = NULL;
    size_t count = 0;
    struct running running = {.output_fd = -1, .hook_fd = -1};
    if ((size_t)snprintf(words, sizeof(words), "%s", client->command) >= sizeof(words))
        return tell(reason, ORIBI_EINVAL, "acme_command is too long%s", "");
    for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        if (count == ORIBI__ACME_COMMAND_WORDS_MAX)
            return tell(reason, ORIBI_EINVAL, "acme_command has more than 32 words%s", "");
        argv[count++] = word;
    }
    if (count == 0)
        return tell(reason, ORIBI_EINVAL, "acme_command is empty%s", "");
    for (size_t i = 0; arguments[i] && i < ARGUMENTS_MAX; i++)
        argv[count++] = (char *)arguments[i];
    argv[count] = NULL;
    int code = start(client, argv, &running);
    if (code < 0)
        (void)tell(reason, code, "the ACME client cannot be started: %s", oribi_os_error_text());
    else
        code = attend(client, &running);
    end(&running);
    if (code == ORIBI_ETIMEOUT)
        (void)tell(reason, code, "the authority or %.60s did not answer in time", argv[0]);
    else if (code == ORIBI_ECLOSED)
        (void)tell(reason, code, "the server has ended%s", "");
    else if (code == 0)
        code = judge(argv[0], &running, reason);
    oribi_buf_deinit(&running.output);
    return code == ORIBI_ETIMEOUT || code == ORIBI_ESYS ? ORIBI_EINVAL : code;
}

/* Is there a key? A full disk leaves an empty one (uacme 1.7.4), with which each later call of the client fails: it is
 * removed, with the rights of the client's user, since that user may have put a link in its place. */
static bool has_key(const struct oribi__acme_client *client, const char *key)
{
    struct stat found;
    bool switches = client->store->switches;
    if (stat(key, &found) < 0 || found.st_size > 0)
        return access(key, F_OK) == 0;
    if (switches && seteuid(client->store->uid) < 0)
        return true;
    (void)unlink(key);                 /* one that stays is told of by the client */
    return switches && seteuid(0) < 0; /* allowed, as the saved user is root */
}

int oribi__acme_client_account(struct oribi__acme_client *client, const char *email, bool again, char *reason)
{
    char key[PATH_MAX + 32];
    const char *arguments[] = {"-a",  client->directory,     "-c", client->account, "-t", "EC", "-y",
                               "new", *email ? email : NULL, NULL};
    (void)snprintf(key, sizeof(key), "%s/private/key.pem", client->account); /* fits */
    if (has_key(client, key) && !again)
        return 0;
    int code = run(client, arguments, reason);
    /* It fails where the authority knows the key already. */
    bool known = code < 0 && code != ORIBI_ECLOSED && strstr(reason, "already exists") && access(key, F_OK) == 0;
    return known       ? 0
           : code == 1 ? tell(reason, ORIBI_EINVAL, "%.300s cannot be entered by the client's user", key)
                       : code;
}

int oribi__acme_client_issue(struct oribi__acme_client *client, const char *request, char *reason)
{
    char hook[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", hook, sizeof(hook) - 1);
    if (n <= 0)
        return tell(reason, ORIBI_EINVAL, "/proc/self/exe cannot be read: %s", "is /proc mounted?");
    hook[n] = '\0';
    const char *arguments[] = {"-a",    client->directory, "-c", client->account, "-n", "-f", "-h", hook,
                               "issue", request,           NULL};
    client->hook = hook;
    int code = run(client, arguments, reason);
    client->hook = NULL;
    return code;
}

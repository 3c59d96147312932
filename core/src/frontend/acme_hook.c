/* The client's hook: tells the order of a challenge, and waits until frontends answer it; see acme.h. The hook protocol
 * is uacme's (uacme(1), HOOKS). */
#include "frontend/acme.h"

#include "oribi/base/os/os.h"
#include "oribi/worker/frontend_protocol.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ANSWER_MS = 30 * 1000 };

static bool take_answer(int fd)
{
    struct pollfd item = {.fd = fd, .events = POLLIN};
    char answer = 0;
    return poll(&item, 1, ANSWER_MS) == 1 && recv(fd, &answer, 1, 0) == 1 && answer == ORIBI_ACME_TOLD_READY;
}

int oribi_frontend_acme_hook(int argc, char **argv)
{
    char line[ORIBI_ACME_MESSAGE_MAX];
    int answers[2];
    const char *number = getenv(ORIBI__ACME_HOOK);
    int fd = number ? (int)strtol(number, NULL, 10) : -1;
    if (argc < 6 || fd < 3) {
        (void)fprintf(stderr, "oribi-frontend: a hook is called as METHOD TYPE IDENT TOKEN AUTHORIZATION\n");
        return 1;
    }
    bool begins = strcmp(argv[1], "begin") == 0;
    if (strcmp(argv[2], "http-01") != 0 || !oribi_acme_is_challenge(argv[4], argv[5]))
        return begins ? 1 : 0; /* another type is tried then */
    int n = snprintf(line, sizeof(line), "%c%s%s%s", begins ? ORIBI_ACME_SAYS_BEGIN : ORIBI_ACME_SAYS_END, argv[4],
                     begins ? " " : "", begins ? argv[5] : ""); /* fits */
    if (!begins)
        return send(fd, line, (size_t)n, MSG_NOSIGNAL) != n;
    /* The answer comes through a socket of this hook's own: that of a hook that was killed reaches no other. */
    if (oribi_os_socket_pair(SOCK_STREAM, false, answers) < 0 ||
        oribi__frontend_message_send(fd, oribi_slice(line, (size_t)n), answers[1]) < 0)
        return 1;
    oribi_os_close(answers[1]);
    return !take_answer(answers[0]);
}

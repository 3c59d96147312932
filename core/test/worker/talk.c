/* The laboratory of this folder; see the header. */
#include "worker/talk.h"

bool say(struct client *c, const char *text)
{
    size_t n = strlen(text);
    return send(c->fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

int heard(struct client *c, struct answer *answer)
{
    size_t len = 0;
    while (!peek_answer(c, false, answer, &len))
        if (c->eof || c->error || !wait_for(client_read(c)))
            return 0;
    c->pos += len;
    return answer->status;
}

int status_of(struct client *c)
{
    struct answer answer;
    return heard(c, &answer);
}

void close_clients(struct site *site)
{
    for (uint32_t i = 0; i < site->client_count; i++)
        if (site->clients[i])
            client_close(site, site->clients[i]);
}

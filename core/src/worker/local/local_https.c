/* Requests that did not come by HTTPS, where they should (https_redirect). */
#include "worker/local/local_private.h"

#include "oribi/config/options.h"

#include <stdio.h>
#include <string.h>

enum { HTTPS_PORT = 443 };

/* Certificate authorities ask there by HTTP, RFC 8555 8.3. */
static bool is_challenge(const struct oribi__local *local)
{
    static const char prefix[] = "/.well-known/acme-challenge/";
    return strncmp(local->path.text, prefix, sizeof(prefix) - 1) == 0;
}

/* Balancers ask for their health by HTTP. */
static bool is_health(const struct oribi__local *local)
{
    const struct oribi_fixed *fixed = local->fixed ? oribi_fixed_find(local->fixed, &local->path) : NULL;
    return fixed && fixed->kind == ORIBI_FIXED_HEALTH;
}

bool oribi__local_wants_https(struct oribi_worker *w, struct oribi_conn *c)
{
    struct oribi__local *local = w->local;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    if (!w->options->https_redirect)
        return false;
    exchange->worker = w;
    exchange->req.head = &exchange->base.head;
    oribi__peer_of(exchange);
    if (!oribi_slice_equal(exchange->req.scheme, ORIBI_SLICE("http")))
        return false;
    return oribi_path_read(exchange->base.head.path, &local->path) != ORIBI_PATH_OK ||
           (!is_challenge(local) && !is_health(local));
}

/* Other methods than GET keep theirs, and their body, with 308 alone (RFC 9110 15.4.9). */
static int status_for(const struct oribi_head *head)
{
    return head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET")) ? 301 : 308;
}

void oribi__local_send_https(struct oribi__local_answer *a)
{
    const struct oribi_head *head = &a->c->exchange->head;
    char port[8] = "";
    bool is_path = head->path.n && head->path.p[0] == '/'; /* OPTIONS * has none */
    if (a->w->options->https_redirect != HTTPS_PORT)
        (void)snprintf(port, sizeof(port), ":%u", a->w->options->https_redirect); /* fits */
    if (!head->host.n) {
        oribi__local_send_error(a, 400);
        return;
    }
    int n = snprintf(a->local->location, sizeof(a->local->location), "https://%.*s%s%.*s%s%.*s", (int)head->host.n,
                     head->host.p, port, is_path ? (int)head->path.n : 1, is_path ? head->path.p : "/",
                     head->query.n ? "?" : "", (int)head->query.n, head->query.p ? head->query.p : "");
    if (n < 0 || (size_t)n >= sizeof(a->local->location)) {
        oribi__local_send_error(a, 414);
        return;
    }
    oribi__local_add(a, "Location", a->local->location, (size_t)n);
    oribi__local_send(a, status_for(head), oribi_slice(NULL, 0));
}

/* Addresses and scheme of a request: those of its connection, or what a trusted peer says about the client behind
 * it. The header fields themselves stay in the environment whoever sent them; here it is decided whether they have
 * an effect. */
#include "worker/exchange.h"

#include "oribi/base/os/os.h"

#include <string.h>

static struct oribi_slice value_of(const struct oribi_field *field)
{
    return field ? oribi_slice(field->value, field->value_len) : oribi_slice(NULL, 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The last element that is not empty: what the peer itself has written where proxies append. */
static struct oribi_slice last_element(struct oribi_slice list)
{
    while (list.n && (is_blank(list.p[list.n - 1]) || list.p[list.n - 1] == ','))
        list.n--;
    const char *comma = list.n ? oribi_os_memrchr(list.p, ',', list.n) : NULL;
    const char *p = comma ? comma + 1 : list.p;
    const char *end = list.p + list.n;
    while (p < end && is_blank(*p))
        p++;
    return oribi_slice(p, (size_t)(end - p));
}

/* Some proxies (Traefik) name the protocol that the connection is about to become; TLS is what counts here. */
static bool is_one_of(struct oribi_slice proto, struct oribi_slice http, struct oribi_slice websocket)
{
    return oribi_slice_equal_fold(proto, http) || oribi_slice_equal_fold(proto, websocket);
}

static void take_forwarded(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    struct oribi_slice forwarded_for = value_of(oribi_head_field(req->head, ORIBI_FIELD_X_FORWARDED_FOR));
    struct oribi_slice client = oribi_trust_client(&exchange->worker->trust, forwarded_for, exchange->client_text);
    if (client.n > 0) {
        req->remote_addr = client;
        req->remote_port = ORIBI_SLICE("0"); /* not known, and the peer's would be the proxy's */
    }
    struct oribi_slice proto = last_element(value_of(oribi_head_field(req->head, ORIBI_FIELD_X_FORWARDED_PROTO)));
    if (is_one_of(proto, ORIBI_SLICE("https"), ORIBI_SLICE("wss")))
        req->scheme = ORIBI_SLICE("https");
    else if (is_one_of(proto, ORIBI_SLICE("http"), ORIBI_SLICE("ws")))
        req->scheme = ORIBI_SLICE("http");
}

void oribi__peer_of(struct oribi__exchange *exchange)
{
    struct oribi_req *req = &exchange->req;
    const struct oribi_conn *c = exchange->base.conn;
    const struct oribi_trust *trust = &exchange->worker->trust;
    req->remote_addr = oribi_slice(c->addr, c->addr_len);
    req->remote_port = oribi_slice(c->port, c->port_len);
    req->scheme = c->proxy_tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http");
    if (trust->count == 0 && !trust->unix_peers)
        return;
    if (oribi_trust_has(trust, req->remote_addr))
        take_forwarded(exchange);
}

/* The client of a request: by the connection, a PROXY header, a trusted peer's words. Over sockets, with a real
 * worker. */
#include "worker/forwarded.c"

#include "worker/client.h"

/* The address, port and scheme of the request as the body. */
static void tell(struct oribi_req *req)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "%.*s %.*s %.*s", (int)req->remote_addr.n, req->remote_addr.p,
                     (int)req->remote_port.n, req->remote_port.p, (int)req->scheme.n, req->scheme.p);
    struct iovec body = {text, (size_t)n};
    if (req->remote_port.n > 1 && memcmp(text, "127.0.0.1 ", 10) == 0) /* our own port is any */
        body = (struct iovec){"peer http", 9};
    if (req->remote_addr.n == 0)
        body = (struct iovec){"peer http", 9};
    (void)oribi_reply(req, 200, NULL, 0, &body, 1);
}

#define HEAD  "GET / HTTP/1.1\r\nHost: a\r\n"
#define GET   HEAD "\r\n"
#define PROXY "PROXY TCP4 1.2.3.4 5.6.7.8 999 80\r\n"

static void open_with(struct site *site, const char *trusted, bool proxy)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(site);
    if (trusted)
        ok_eq(oribi_options_set(&site->options, "trusted_proxies", trusted, error), 0);
    site->options.proxy_protocol = proxy;
    site_open(site, tell);
}

static void test_an_untrusted_peer_speaks_for_itself(void)
{
    struct site site;
    open_with(&site, "10.0.0.0/8", true);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\r\n"));
    ok_answer(&site, c, 200, "peer http");
    ok(client_send(&site, c, PROXY GET)); /* the protocol is for trusted peers */
    ok_answer(&site, c, 400, NULL);
    ok(closed_after(&site, c));
    site_close(&site);
}

static void test_a_trusted_peer_is_believed(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", false);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 6.6.6.6, 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 https");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https, http\r\n\r\n"));
    ok_answer(&site, c, 200, "2001:db8::1 0 http");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: nobody\r\nX-Forwarded-Proto: gopher\r\n\r\n"));
    ok_answer(&site, c, 200, "peer http");
    ok(client_send(&site, c, GET));
    ok_answer(&site, c, 200, "peer http");
    ok(client_send(&site, c, PROXY GET)); /* switched off */
    ok_answer(&site, c, 400, NULL);
    site_close(&site);
}

static void test_websockets_schemes_tell_of_tls_too(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", false);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: wss\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 https");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https, WS\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 http");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 9.9.9.9, ,\r\nX-Forwarded-Proto: http, wss, ,\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 https");
    site_close(&site);
}

static void test_mapped_addresses_are_written_as_ipv4(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix,10.0.0.0/8", true);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, "PROXY TCP6 ::ffff:10.0.0.9 ::1 999 80\r\n" GET));
    ok_answer(&site, c, 200, "10.0.0.9 999 http");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: ::ffff:9.9.9.9, ::ffff:10.0.0.1\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 http");
    site_close(&site);
}

/* Some proxies append a line of their own to what the client has sent (RFC 9110 5.3: the lines are one list). */
static void test_several_lines_are_one_list(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix,10.0.0.0/8", false);
    struct client *c = client_open(&site);
    ok(client_send(&site, c,
                   HEAD "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 9.9.9.9\r\n"
                        "X-Forwarded-Proto: http\r\n\r\n"));
    ok_answer(&site, c, 200, "9.9.9.9 0 http");
    ok(client_send(&site, c,
                   HEAD "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 5.5.5.5, 10.0.0.1\r\n"
                        "X-Forwarded-For: 10.0.0.2\r\n\r\n"));
    ok_answer(&site, c, 200, "5.5.5.5 0 http");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: nobody, 10.0.0.1\r\n\r\n"));
    ok_answer(&site, c, 200, "10.0.0.1 0 http");
    site_close(&site);
}

static void test_a_proxy_header_holds_for_the_connection(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", true);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, PROXY GET GET));
    ok_answer(&site, c, 200, "1.2.3.4 999 http");
    ok_answer(&site, c, 200, "1.2.3.4 999 http");
    ok(client_send(&site, c, HEAD "X-Forwarded-For: 9.9.9.9\r\n\r\n")); /* 1.2.3.4 itself is not trusted */
    ok_answer(&site, c, 200, "1.2.3.4 999 http");
    ok(client_send(&site, c, PROXY GET)); /* once a connection */
    ok_answer(&site, c, 400, NULL);
    ok(closed_after(&site, c));
    site_close(&site);
}

static void test_a_proxy_header_cut_anywhere(void)
{
    static const char text[] = PROXY GET;
    struct site site;
    open_with(&site, "127.0.0.1,unix", true);
    for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
        struct client *c = client_open(&site);
        (void)client_send_bytes(&site, c, text, cut);
        settle(&site);
        (void)client_send(&site, c, text + cut);
        ok_answer(&site, c, 200, "1.2.3.4 999 http");
        client_close(&site, c);
    }
    site_close(&site);
}

static void test_tls_at_the_proxy(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", true);
    struct client *c = client_open(&site);
    static const char header[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x14"
                                 "\x01\x02\x03\x04\x7f\0\0\x01\x03\xe7\0\x50"
                                 "\x20\0\x05\x01\0\0\0\0"; /* one extension: the client speaks TLS */
    ok(client_send_bytes(&site, c, header, sizeof(header) - 1));
    ok(client_send(&site, c, GET));
    ok_answer(&site, c, 200, "1.2.3.4 999 https");
    site_close(&site);
}

static void test_no_proxy_header_where_one_is_due(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", true);
    struct client *c = client_open(&site);
    ok(client_send(&site, c, GET GET));
    ok_answer(&site, c, 400, NULL);
    ok(closed_after(&site, c));
    c = client_open(&site);
    ok(client_send(&site, c, "PROXY TCP4 1.2.3.4 5.6.7.8 999\r\n" GET));
    ok_answer(&site, c, 400, NULL);
    ok(closed_after(&site, c));
    ok_eq(site.calls, 0);
    site_close(&site);
}

static void test_a_health_check_of_the_proxy(void)
{
    struct site site;
    open_with(&site, "127.0.0.1,unix", true);
    struct client *c = client_open(&site);
    ok(client_send_bytes(&site, c, "\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0", 16));
    settle(&site);
    client_close(&site, c); /* connects, says nothing more and goes */
    c = client_open(&site);
    ok(client_send(&site, c, "PROXY UNKNOWN\r\n"));
    settle(&site);
    ok(client_send(&site, c, GET));
    ok_answer(&site, c, 200, "peer http");
    site_close(&site);
}

static void test_half_a_proxy_header_has_its_time(void)
{
    struct site site;
    char error[ORIBI_ERROR_TEXT_CAP];
    site_init(&site);
    (void)oribi_options_set(&site.options, "trusted_proxies", "127.0.0.1,unix", error);
    site.options.proxy_protocol = true;
    site.options.head_timeout_ms = 50;
    site_open(&site, tell);
    struct client *half = client_open(&site);
    ok(client_send(&site, half, "PROXY TCP4 1.2"));
    struct client *whole = client_open(&site);
    ok(client_send(&site, whole, PROXY)); /* and no request */
    struct client *begun = client_open(&site);
    ok(client_send(&site, begun, PROXY "GET / HT"));
    ok_answer(&site, begun, 408, NULL);
    ok(closed_after(&site, half));
    ok(closed_after(&site, whole));
    site_close(&site);
}

int main(void)
{
    run_everywhere(test_an_untrusted_peer_speaks_for_itself);
    run_everywhere(test_a_trusted_peer_is_believed);
    run_everywhere(test_websockets_schemes_tell_of_tls_too);
    run_everywhere(test_mapped_addresses_are_written_as_ipv4);
    run_everywhere(test_several_lines_are_one_list);
    run_everywhere(test_a_proxy_header_holds_for_the_connection);
    run_everywhere(test_a_proxy_header_cut_anywhere);
    run_everywhere(test_tls_at_the_proxy);
    run_everywhere(test_no_proxy_header_where_one_is_due);
    run_everywhere(test_a_health_check_of_the_proxy);
    run_everywhere(test_half_a_proxy_header_has_its_time);
    return done_testing();
}

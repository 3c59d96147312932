/* Findings about certificates. Reading order: oribi_frontend_check, look_at_listener, look_at_pair. */
#include "frontend/certificate_check.h"

#include "frontend/pairs.h"
#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DAY_S = 24 * 3600,
    SOON_S = 14 * DAY_S,
    RSA_BITS_MIN = 2048, /* below it OpenSSL's clients refuse it at their default level */
    TEXT_STEP = 64 * 1024,
};

/* A file's name may have controls in it; the rest are our own words. */
static void say(const char *level, const char *id, const char *what, const char *why, const char *todo)
{
    char line[ORIBI_ERROR_TEXT_CAP];
    size_t n = strnlen(what, sizeof(line) - 1);
    for (size_t i = 0; i < n; i++)
        line[i] = (unsigned char)what[i] < 0x20 ? '?' : what[i];
    line[n] = '\0';
    (void)printf("%s\t%s\t%s\t%s\t%s\n", level, id, line, why, todo); /* oribi_frontend_check() looks at the end */
}

static const char *day_of(int64_t second, char dst[16])
{
    struct tm parts;
    time_t when = (time_t)second;
    if (!gmtime_r(&when, &parts) || strftime(dst, 16, "%Y-%m-%d", &parts) == 0)
        (void)snprintf(dst, 16, "%s", "a year unknown");
    return dst;
}

/* Of certificates that live for days alone, the last third; half of it for one by ACME, since the server renews that at
 * the third's begin. */
static int64_t soon_s(const struct oribi_tls_look *look, bool by_acme)
{
    int64_t part_s = (look->expires_s - look->begins_s) / (by_acme ? 6 : 3);
    return part_s < SOON_S ? part_s : SOON_S;
}

static void look_at_time(const char *name, const struct oribi_tls_look *look, bool by_acme, int64_t now_s)
{
    const char *renew =
        by_acme ? "see why it was not renewed: oribi ctl certificates" : "renew it, then: oribi ctl certificates";
    char what[ORIBI_ERROR_TEXT_CAP];
    char day[16];
    if (look->expires_s <= now_s) {
        (void)snprintf(what, sizeof(what), "%s: it has expired, on %s", name, day_of(look->expires_s, day));
        say(by_acme ? "risk" : "wrong", "certificate-expired", what, "Clients refuse the connection", renew);
    } else if (look->begins_s > now_s) {
        (void)snprintf(what, sizeof(what), "%s: it is not valid before %s", name, day_of(look->begins_s, day));
        say("risk", "certificate-early", what, "Clients refuse the connection until then",
            "use the old one until then, or set the clock right");
    } else if (look->expires_s - now_s < soon_s(look, by_acme)) {
        long long days = (long long)(look->expires_s - now_s) / DAY_S;
        (void)snprintf(what, sizeof(what), "%s: it expires on %s, in %lld day%s", name, day_of(look->expires_s, day),
                       days, days == 1 ? "" : "s");
        say("risk", "certificate-expires", what, "Clients refuse the connection then", renew);
    }
}

static void look_at_rest(const char *name, const struct oribi_tls_look *look)
{
    char what[ORIBI_ERROR_TEXT_CAP];
    if (look->lacks_chain) {
        (void)snprintf(what, sizeof(what), "%s: there is no intermediate certificate behind it", name);
        say("risk", "certificate-chain", what, "Clients that do not know its issuer refuse the connection",
            "take the file with the whole chain: fullchain.pem of certbot, NAME.crt of lego");
    }
    if (look->lacks_names) {
        (void)snprintf(what, sizeof(what), "%s: it has no name (subjectAltName)", name);
        say("risk", "certificate-names", what, "Browsers refuse the connection", "have it made with its DNS names");
    }
    if (look->rsa_bits && look->rsa_bits < RSA_BITS_MIN) {
        (void)snprintf(what, sizeof(what), "%s: its RSA key has %d bits", name, look->rsa_bits);
        say("risk", "certificate-key", what, "Clients refuse the connection", "make one of 2048 bits, or of ECDSA");
    }
}

/* False: it cannot be used. One of ACME keeps no server from its start; before it has come there is nothing to find. */
static bool look_at_pair(const struct oribi_tls_certificate *pair, int64_t now_s)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char name[128];
    struct oribi_tls_look look;
    bool by_acme = pair->names.n > 0;
    if (pair->placeholder)
        return true;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(pair->name.n < 100 ? pair->name.n : 100), pair->name.p);
    int code = oribi_tls_look(pair, &look, error);
    if (code < 0 && by_acme) {
        say("risk", "certificate-acme", error, "A self-signed certificate serves, which clients refuse",
            "the server asks for a new one at its start; if none comes: oribi ctl certificates");
        return false;
    }
    if (code < 0) {
        say("wrong", "certificate", error, "The server does not start",
            "correct the files: in one the certificate, then its chain; its own key in the other or in the same");
        return false;
    }
    look_at_time(name, &look, by_acme, now_s);
    look_at_rest(name, &look);
    return true;
}

/* Those for all addresses come with each. */
static bool was_before(const struct oribi__pairs *pairs, uint32_t listener, const struct oribi_tls_certificate *pair)
{
    for (uint32_t i = 0; i < listener; i++)
        for (uint32_t k = 0; k < pairs->counts[i]; k++)
            if (oribi_slice_equal(pairs->items[i][k].name, pair->name) &&
                oribi_slice_equal(pairs->items[i][k].key, pair->key))
                return true;
    return false;
}

static void look_at_listener(const struct oribi__pairs *pairs, uint32_t i, int64_t now_s)
{
    struct oribi_tls_config config = {.certificates = pairs->items[i],
                                      .count = pairs->counts[i],
                                      .client_ca = pairs->client_ca,
                                      .client_ca_name = pairs->client_ca_name,
                                      .verify = ORIBI_TLS_VERIFY_REQUIRED,
                                      .tls12 = true};
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_tls *tls = NULL;
    bool right = true;
    for (uint32_t k = 0; k < pairs->counts[i]; k++)
        if (!was_before(pairs, i, &pairs->items[i][k]))
            right &= look_at_pair(&pairs->items[i][k], now_s);
    if (right && oribi_tls_create(&config, NULL, &tls, error) < 0)
        say("wrong", "certificate", error, "The server does not start", "correct the file");
    oribi_tls_release(tls);
}

/* --- the input --- */

static bool read_all(struct oribi_buf *text)
{
    ssize_t n = 1;
    while (n > 0 && text->len <= ORIBI_FRONTEND_TEXT_MAX) {
        n = oribi_os_read(STDIN_FILENO, oribi_buf_reserve(text, TEXT_STEP), TEXT_STEP);
        text->len += n > 0 ? (size_t)n : 0;
    }
    return n == 0;
}

static bool take(const struct oribi_buf *text, struct oribi__pairs *pairs)
{
    struct oribi__record record;
    const char *at = text->p;
    const char *end = text->p + oribi__records_len(text->p, text->len);
    while (oribi__record_next(&at, end, &record))
        if (!oribi__pairs_add(pairs, &record))
            return false;
    return at == end;
}

int oribi_frontend_check(void)
{
    struct oribi_buf text = {0};
    struct oribi__pairs *pairs = oribi_mem_alloc(1, sizeof(*pairs));
    int64_t now_s = oribi_clock_wall_s();
    bool taken = read_all(&text) && text.len > 0 && take(&text, pairs);
    if (!taken)
        (void)fprintf(stderr, "oribi-frontend: --check is asked by the server's own check alone\n");
    for (uint32_t i = 0; taken && i < ORIBI_LISTENERS_MAX; i++)
        if (pairs->counts[i])
            look_at_listener(pairs, i, now_s);
    explicit_bzero(text.p, text.len);
    oribi_buf_deinit(&text);
    oribi_mem_free(pairs);
    return taken && fflush(stdout) == 0 ? 0 : 1;
}

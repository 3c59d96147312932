/* The PSGI environment of a request.
 *
 * What is the same for every request sits in a template hash that newHVhv() copies without looking a key up. The rest is stored under keys
 * whose hash values were computed once. Constant strings are scalars that share their text with Perl's table of hash keys: copying one
 * allocates no buffer, and an application that writes to its copy gets a text of its own. Nothing is read-only.
 *
 * Five things are lent to one environment after the other instead of being made anew: the empty psgi.input, the array of cleanup handlers and
 * the three scalars of lazy.c. psgi_env_recycle() replaces each that the application kept or changed. The version array is one for all. */
#include "xs/binding.h"


#include <fcntl.h>
#include <perliol.h>

static const char *const key_names[PSGI_KEY_COUNT] = {
#define PSGI_KEY_NAME(id, key) [PSGI_KEY_##id] = key,
    PSGI_KEYS(PSGI_KEY_NAME)
#undef PSGI_KEY_NAME
};

/* 27 keys of ours leave room for so many fields in the small template; a table that must grow costs more than one that is too large. */
enum { SMALL_FIELDS = 5 };

static const char *const method_names[PSGI_METHOD_COUNT] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

static SV *shared_text(pTHX_ const char *text)
{
    return newSVpvn_share(text, (I32)strlen(text), 0);
}

/* A new scalar with the text of `shared`, which came from newSVpvn_share(). */
static inline SV *copy_shared(pTHX_ SV *shared)
{
    return newSVhek(SvSHARED_HEK_FROM_PV(SvPVX_const(shared)));
}

static inline SV *text_of(pTHX_ struct oribi_slice slice)
{
    return newSVpvn(slice.p ? slice.p : "", slice.n);
}

/* Takes value. */
static inline void store_under(pTHX_ HV *env, SV *key, SV *value)
{
    if (!hv_store_ent(env, key, value, SvSHARED_HASH(key)))
        SvREFCNT_dec(value);
}

static inline void store(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key, SV *value)
{
    store_under(aTHX_ env, w->keys[key], value);
}

SV *psgi_env_get(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key)
{
    HE *entry = hv_fetch_ent(env, w->keys[key], 0, SvSHARED_HASH(w->keys[key]));
    return entry ? HeVAL(entry) : NULL;
}

/* --- psgi.input --- */

/* A glob without a name in any package, as `open my $handle` makes them. Takes fp; NULL gives NULL. */
static GV *handle_of(pTHX_ PerlIO *fp)
{
    if (!fp)
        return NULL;
    GV *glob = (GV *)newSV(0);
    gv_init_pvn(glob, gv_stashpvs("Oribi::Input", GV_ADD), "input", 5, 0);
    IO *io = GvIOn(glob);
    IoTYPE(io) = IoTYPE_RDONLY;
    IoIFP(io) = fp;
    return glob;
}

/* A handle that reads a copy of these bytes and can seek in it. */
static GV *handle_on_memory(pTHX_ const char *p, STRLEN n)
{
    SV *data = newSVpvn(p, n);
    SV *ref = sv_2mortal(newRV_noinc(data));
    return handle_of(aTHX_ PerlIO_openn(aTHX_ NULL, "r", -1, 0, 0, NULL, 1, &ref));
}

/* A handle on the core's unlinked file, which stands at 0. The application may keep it longer than the request lives. */
static GV *handle_on_file(pTHX_ int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return NULL;
    return handle_of(aTHX_ PerlIO_fdopen(copy, "r"));
}

static void open_empty_input(pTHX_ struct psgi_worker *w)
{
    w->empty_input = handle_on_memory(aTHX_ "", 0);
    if (!w->empty_input)
        croak("Oribi: no in-memory file handle for psgi.input: %s", Strerror(errno));
    w->empty_input_layer = *IoIFP(GvIO(w->empty_input));
}

/* The handle without a body is reused until the application closes it, pushes a layer on it, or keeps it. */
static SV *input_of(pTHX_ struct psgi_worker *w, const struct oribi_req *req)
{
    GV *glob = NULL;
    if (req->body_fd >= 0)
        glob = handle_on_file(aTHX_ req->body_fd);
    else if (req->body.n > 0)
        glob = handle_on_memory(aTHX_ req->body.p, req->body.n);
    else
        return newRV_inc((SV *)w->empty_input);
    return glob ? newRV_noinc((SV *)glob) : NULL;
}

static void recycle_input(pTHX_ struct psgi_worker *w)
{
    PerlIO *fp = GvIO(w->empty_input) ? IoIFP(GvIO(w->empty_input)) : NULL;
    bool untouched = SvREFCNT(w->empty_input) == 1 && !SvOBJECT(w->empty_input) && PerlIOValid(fp) &&
                     (void *)*fp == w->empty_input_layer && !(PerlIOBase(fp)->flags & PERLIO_F_UTF8);
    if (untouched) {
        IO *io = GvIO(w->empty_input);
        PerlIO_clearerr(fp);
        IoFLAGS(io) &= ~IOf_NOLINE; /* else the second request to slurp it gets undef where the first got "" */
        IoLINES(io) = 0;
        return;
    }
    SvREFCNT_dec((SV *)w->empty_input);
    open_empty_input(aTHX_ w);
}

/* --- the rest of the values --- */

/* Decoded once, a decoded NUL stays a NUL. NULL: it cannot be, and the core has answered. */
static SV *path_info_of(pTHX_ struct oribi_req *req)
{
    struct oribi_slice path = req->head->path;
    SV *sv = text_of(aTHX_ path);
    if (path.n == 0 || !memchr(path.p, '%', path.n))
        return sv;
    ssize_t n = oribi_req_decode_path(req, SvPVX(sv));
    if (n < 0) {
        SvREFCNT_dec(sv);
        return NULL;
    }
    SvCUR_set(sv, (STRLEN)n);
    *SvEND(sv) = '\0';
    return sv;
}

/* The target without scheme and authority, which PSGI keeps out of REQUEST_URI. */
static SV *request_uri_of(pTHX_ const struct oribi_head *head)
{
    struct oribi_slice target = head->target;
    if (target.n > 0 && (target.p[0] == '/' || target.p[0] == '*'))
        return text_of(aTHX_ target);
    SV *sv = text_of(aTHX_ head->path);
    if (head->query.n > 0) {
        sv_catpvn(sv, "?", 1);
        sv_catpvn(sv, head->query.p, head->query.n);
    }
    return sv;
}

static SV *method_of(pTHX_ struct psgi_worker *w, struct oribi_slice method)
{
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        if (SvCUR(w->methods[i]) == method.n && memcmp(SvPVX_const(w->methods[i]), method.p, method.n) == 0)
            return copy_shared(aTHX_ w->methods[i]);
    return text_of(aTHX_ method);
}

/* What is nearly always as in the request before stands in the template, which learns a new value when one comes. */
static void follow(pTHX_ struct psgi_worker *w, HV *env, enum psgi_followed followed, enum psgi_key key,
                   struct oribi_slice slice)
{
    SV *known = w->followed[followed];
    if (known && SvCUR(known) == slice.n && memcmp(SvPVX_const(known), slice.p, slice.n) == 0)
        return;
    SvREFCNT_dec(known);
    known = w->followed[followed] = newSVpvn_share(slice.n ? slice.p : "", (I32)slice.n, 0);
    for (int size = 0; size < PSGI_TEMPLATE_COUNT; size++)
        store(aTHX_ w, w->templates[size], key, copy_shared(aTHX_ known));
    store(aTHX_ w, env, key, copy_shared(aTHX_ known));
}

static void store_peer(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    follow(aTHX_ w, env, PSGI_FOLLOWED_NAME, PSGI_KEY_SERVER_NAME, req->server_name);
    follow(aTHX_ w, env, PSGI_FOLLOWED_PORT, PSGI_KEY_SERVER_PORT, req->server_port);
    follow(aTHX_ w, env, PSGI_FOLLOWED_SCHEME, PSGI_KEY_URL_SCHEME, req->scheme);
    if (req->remote_addr.n > 0) {
        follow(aTHX_ w, env, PSGI_FOLLOWED_ADDR, PSGI_KEY_REMOTE_ADDR, req->remote_addr);
        store(aTHX_ w, env, PSGI_KEY_REMOTE_PORT, text_of(aTHX_ req->remote_port));
    } else {
        /* A peer on a unix socket has no address; applications expect one, and it is on this machine. */
        follow(aTHX_ w, env, PSGI_FOLLOWED_ADDR, PSGI_KEY_REMOTE_ADDR, ORIBI_SLICE("127.0.0.1"));
        store(aTHX_ w, env, PSGI_KEY_REMOTE_PORT, copy_shared(aTHX_ w->unix_port));
    }
}

static void store_fields(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_head *head)
{
    char name[ORIBI_FIELD_NAME_BYTES_MAX + 5];
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        SV *value = newSVpvn(field->value, field->value_len);
        if (field->id != ORIBI_FIELD_OTHER) {
            store_under(aTHX_ env, w->field_keys[field->id], value);
            continue;
        }
        size_t len = oribi_field_write_env_key(field, name);
        if (!hv_store(env, name, (I32)len, value, 0))
            SvREFCNT_dec(value);
    }
}

/* Fields behind a chunked body: in a hash of their own, so that none can pass for one of the head. */
static void store_trailers(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    HV *trailers = newHV();
    for (uint32_t i = 0; i < req->trailer_count; i++) {
        const struct oribi_field *field = &req->trailers[i];
        SV *value = newSVpvn(field->value, field->value_len);
        if (!hv_store(trailers, field->name, (I32)field->name_len, value, 0))
            SvREFCNT_dec(value);
    }
    store(aTHX_ w, env, PSGI_KEY_TRAILERS, newRV_noinc((SV *)trailers));
}

static void store_lent(pTHX_ struct psgi_worker *w, HV *env)
{
    psgi_lazy_bind(aTHX_ w->lazy[PSGI_LAZY_IO], w);
    store(aTHX_ w, env, PSGI_KEY_IO, SvREFCNT_inc_simple_NN(w->lazy[PSGI_LAZY_IO]));
    psgi_lazy_bind(aTHX_ w->lazy[PSGI_LAZY_EXTEND], w);
    store(aTHX_ w, env, PSGI_KEY_EXTEND, SvREFCNT_inc_simple_NN(w->lazy[PSGI_LAZY_EXTEND]));
    if (w->early_hints) {
        psgi_lazy_bind(aTHX_ w->lazy[PSGI_LAZY_INFORMATIONAL], w);
        store(aTHX_ w, env, PSGI_KEY_INFORMATIONAL, SvREFCNT_inc_simple_NN(w->lazy[PSGI_LAZY_INFORMATIONAL]));
    }
    store(aTHX_ w, env, PSGI_KEY_CLEANUP_HANDLERS, newRV_inc((SV *)w->cleanup_handlers));
}

/* What the client has sent in advance in the protocol that it asks for: sysread on psgix.io would not give it. */
static void store_unread(pTHX_ struct psgi_worker *w, HV *env, const struct oribi_req *req)
{
    struct oribi_slice behind = oribi_req_behind(req);
    if (behind.n > 0)
        store(aTHX_ w, env, PSGI_KEY_UNREAD, newSVpvn(behind.p, behind.n));
}

HV *psgi_env_build(pTHX_ struct psgi_worker *w, struct oribi_req *req)
{
    const struct oribi_head *head = req->head;
    SV *path_info = path_info_of(aTHX_ req);
    if (!path_info)
        return NULL;
    HV *env = newHVhv(w->templates[head->field_count <= SMALL_FIELDS ? 0 : 1]);
    store(aTHX_ w, env, PSGI_KEY_REQUEST_METHOD, method_of(aTHX_ w, head->method));
    store(aTHX_ w, env, PSGI_KEY_REQUEST_URI, request_uri_of(aTHX_ head));
    store(aTHX_ w, env, PSGI_KEY_PATH_INFO, path_info);
    store(aTHX_ w, env, PSGI_KEY_QUERY_STRING,
          head->query.n ? text_of(aTHX_ head->query) : copy_shared(aTHX_ w->empty));
    store(aTHX_ w, env, PSGI_KEY_SERVER_PROTOCOL, copy_shared(aTHX_ w->protocols[head->minor ? 1 : 0]));
    store_peer(aTHX_ w, env, req);
    store_fields(aTHX_ w, env, head);
    SV *input = input_of(aTHX_ w, req);
    store(aTHX_ w, env, PSGI_KEY_INPUT, input ? input : newSV(0));
    store(aTHX_ w, env, PSGI_KEY_QUEUE_US, newSViv((IV)req->queue_us));
    store_lent(aTHX_ w, env);
    if (req->trailer_count > 0)
        store_trailers(aTHX_ w, env, req);
    if (req->head->upgrade)
        store_unread(aTHX_ w, env, req);
    return env;
}

void psgi_env_recycle(pTHX_ struct psgi_worker *w)
{
    recycle_input(aTHX_ w);
    if (SvREFCNT(w->cleanup_handlers) != 1 || AvFILLp(w->cleanup_handlers) >= 0 || SvOBJECT(w->cleanup_handlers) ||
        SvMAGICAL(w->cleanup_handlers)) {
        SvREFCNT_dec((SV *)w->cleanup_handlers);
        w->cleanup_handlers = newAV();
    }
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++) {
        SV *lazy = w->lazy[kind];
        if (SvREFCNT(lazy) == 1 && psgi_lazy_fresh(aTHX_ lazy))
            continue;
        psgi_lazy_bind(aTHX_ lazy, NULL);
        SvREFCNT_dec(lazy);
        w->lazy[kind] = psgi_lazy_new(aTHX_ (enum psgi_lazy_kind)kind);
    }
}

/* --- once per worker --- */

static void fill_template(pTHX_ struct psgi_worker *w, HV *env, bool multiprocess)
{
    AV *version = newAV();
    av_push(version, newSViv(1));
    av_push(version, newSViv(1));
    store(aTHX_ w, env, PSGI_KEY_SCRIPT_NAME, copy_shared(aTHX_ w->empty));
    store(aTHX_ w, env, PSGI_KEY_VERSION, newRV_noinc((SV *)version));
    store(aTHX_ w, env, PSGI_KEY_ERRORS, newRV_inc((SV *)PL_stderrgv));
    store(aTHX_ w, env, PSGI_KEY_MULTITHREAD, newSViv(0));
    store(aTHX_ w, env, PSGI_KEY_MULTIPROCESS, newSViv(multiprocess));
    store(aTHX_ w, env, PSGI_KEY_RUN_ONCE, newSViv(0));
    store(aTHX_ w, env, PSGI_KEY_NONBLOCKING, newSViv(0));
    store(aTHX_ w, env, PSGI_KEY_STREAMING, newSViv(1));
    store(aTHX_ w, env, PSGI_KEY_INPUT_BUFFERED, newSViv(1));
    store(aTHX_ w, env, PSGI_KEY_HARAKIRI, newSViv(1));
    store(aTHX_ w, env, PSGI_KEY_CLEANUP, newSViv(1));
}

void psgi_env_init(pTHX_ struct psgi_worker *w, bool multiprocess)
{
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        w->keys[i] = shared_text(aTHX_ key_names[i]);
    for (int i = 1; i < ORIBI_FIELD_COUNT; i++)
        w->field_keys[i] = shared_text(aTHX_ oribi_field_env_key((enum oribi_field_id)i));
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        w->methods[i] = shared_text(aTHX_ method_names[i]);
    w->protocols[0] = shared_text(aTHX_ "HTTP/1.0");
    w->protocols[1] = shared_text(aTHX_ "HTTP/1.1");
    w->empty = shared_text(aTHX_ "");
    w->unix_port = shared_text(aTHX_ "0");
    w->cleanup_handlers = newAV();
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++)
        w->lazy[kind] = psgi_lazy_new(aTHX_ (enum psgi_lazy_kind)kind);
    for (int size = 0; size < PSGI_TEMPLATE_COUNT; size++) {
        w->templates[size] = newHV();
        hv_ksplit(w->templates[size], size == 0 ? 32 : 64);
        fill_template(aTHX_ w, w->templates[size], multiprocess);
    }
    open_empty_input(aTHX_ w);
}

void psgi_env_deinit(pTHX_ struct psgi_worker *w)
{
    for (int i = 0; i < PSGI_KEY_COUNT; i++)
        SvREFCNT_dec(w->keys[i]);
    for (int i = 1; i < ORIBI_FIELD_COUNT; i++)
        SvREFCNT_dec(w->field_keys[i]);
    for (int i = 0; i < PSGI_METHOD_COUNT; i++)
        SvREFCNT_dec(w->methods[i]);
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++) {
        if (w->lazy[kind])
            psgi_lazy_bind(aTHX_ w->lazy[kind], NULL);
        SvREFCNT_dec(w->lazy[kind]);
    }
    SvREFCNT_dec(w->protocols[0]);
    SvREFCNT_dec(w->protocols[1]);
    SvREFCNT_dec(w->empty);
    SvREFCNT_dec(w->unix_port);
    for (int i = 0; i < PSGI_FOLLOWED_COUNT; i++)
        SvREFCNT_dec(w->followed[i]);
    SvREFCNT_dec((SV *)w->empty_input);
    SvREFCNT_dec((SV *)w->cleanup_handlers);
    for (int size = 0; size < PSGI_TEMPLATE_COUNT; size++)
        SvREFCNT_dec((SV *)w->templates[size]);
}

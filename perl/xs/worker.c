/* The loop of a worker, and every way out of a call.
 *
 *   take ─► environment ─► application ─► reply ─► close of the body ─► cleanup handlers ─► harakiri ─► take
 *                              │             │
 *                       dies: 500, log    not a response: 500, log     (an Oribi::Form::Error: its own status)
 *                       exits: 500 for its client, END blocks, the process ends
 *
 * The application is called directly, with one eval around it. What runs Perl code after that (delayed answers,
 * objects, ties) goes through a second eval, entered only then. A stack of its own keeps `next` and `last` of the
 * application from leaving loops that are not its own. */
#include "xs/binding.h"

#include "oribi/base/clock.h"
#include "oribi/worker/socket.h"

#include <stdio.h>

enum { CLEANUP_MAX = 1024 }; /* handlers of one request: each may add another */

const char *psgi_line(const struct psgi_worker *w)
{
    return oribi_thread_line(oribi_thread(w->core, 0));
}

/* --- the call's end --- */

void psgi_call_ended(struct psgi_worker *w)
{
    w->state = PSGI_NONE;
    w->req = NULL;
}

void psgi_after(struct psgi_worker *w)
{
    if (w->after || w->state != PSGI_NONE)
        return;
    w->after = true;
    oribi_thread_after(oribi_thread(w->core, 0));
}

static void come_back(struct psgi_worker *w)
{
    if (!w->after)
        return;
    w->after = false;
    oribi_thread_back(oribi_thread(w->core, 0));
}

/* Whatever state the call is in, it has failed: an answer with this status while nothing was sent, a cut connection
 * after that. */
static void fail_call(struct psgi_worker *w, int status)
{
    if (w->state == PSGI_OPEN)
        oribi_reply_error(w->req, status);
    else if (w->state != PSGI_NONE)
        oribi_reply_abort(w->req);
    psgi_call_ended(w);
}

/* A client that left while the application streamed to it is no failure of the application: write() died to tell it. */
static void failed_with_exception(pTHX_ struct psgi_worker *w, SV *env)
{
    psgi_input_settle(aTHX_ w, true);
    /* before it is printed, which empties $@ */
    bool timed_out = SvROK(ERRSV) && sv_derived_from(ERRSV, "Oribi::CallTimeout");
    bool cancelled = SvROK(ERRSV) && sv_derived_from(ERRSV, "Oribi::ClientGone") && psgi_cancelled(w);
    int refused = psgi_form_error_status(aTHX_ ERRSV);
    SV *error = w->failure_page && (env || (w->state == PSGI_OPEN && oribi_socket_called(w->req)))
                    ? sv_mortalcopy(ERRSV)
                    : NULL;
    if (w->state != PSGI_GONE && !cancelled)
        psgi_log_failure(aTHX_ w, refused ? ORIBI_LOG_INFO : ORIBI_LOG_ERROR,
                         refused ? "the request is refused" : "the application died");
    CLEAR_ERRSV(); /* an exception object must not live until the next request */
    if (cancelled && w->state == PSGI_OPEN) {
        oribi_reply_gone(w->req);
        psgi_call_ended(w);
    }
    if (UNLIKELY(error && !cancelled && !refused) && psgi_failure_answer(aTHX_ w, error, env, timed_out ? 504 : 500))
        return;
    fail_call(w, timed_out ? 504 : refused ? refused : 500);
}

static void failed_with_reason(pTHX_ struct psgi_worker *w, SV *env)
{
    SV *error = NULL;

    if (w->reason[0]) {
        oribi_thread_log_about(oribi_thread(w->core, 0));
        oribi_log(ORIBI_LOG_ERROR, "%s: bad response: %s", psgi_line(w), w->reason);
        oribi_thread_log_about(NULL);
    }
    if (w->failure_page)
        error = sv_2mortal(newSVpvf("bad response: %s", w->reason[0] ? w->reason : "see the log"));
    if (error && psgi_failure_answer(aTHX_ w, error, env, 500))
        return;
    fail_call(w, 500);
}

/* A process that the application forked wherever we ran its code came back from there: it ends as a script does,
 * without a word to our clients. */
void psgi_leave_child(pTHX_ struct psgi_worker *w)
{
    if (LIKELY(!oribi_worker_abandoned(w->core)))
        return;
    bool died = psgi_exception_pending(aTHX);
    if (died)
        PerlIO_printf(PerlIO_stderr(), "%s", SvPV_nolen(psgi_text(aTHX_ ERRSV)));
    psgi_call_ended(w);
    my_exit(died ? 255 : 0);
}

/* Ends a forked process after code whose exceptions are not for us: destructors. */
static void leave_child_quietly(pTHX_ struct psgi_worker *w)
{
    if (LIKELY(!oribi_worker_abandoned(w->core)))
        return;
    psgi_call_ended(w);
    my_exit(0);
}

/* Runs when the loop is left, also by exit() inside the application. */
static void loop_left(pTHX_ void *data)
{
    struct psgi_worker *w = (struct psgi_worker *)data;
    psgi_input_settle(aTHX_ w, true);
    come_back(w);
    if (w->state == PSGI_NONE || oribi_worker_abandoned(w->core))
        return;
    oribi_thread_log_about(oribi_thread(w->core, 0));
    oribi_log(ORIBI_LOG_ERROR, "%s: the application called exit", psgi_line(w));
    oribi_thread_log_about(NULL);
    oribi_reply_abort(w->req);
    psgi_call_ended(w);
}

/* --- what may die --- */

/* Oribi::Worker::_answer(worker, response, environment): the part of a reply that runs Perl code. */
XS_INTERNAL(psgi_xs_answer);
XS_INTERNAL(psgi_xs_answer)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    struct psgi_worker *w = INT2PTR(struct psgi_worker *, SvIV(ST(0)));
    SV *res = ST(1);
    SV *env = ST(2);
    SP -= 3;
    PUTBACK;
    if (psgi_reply_any(aTHX_ w, res) != PSGI_DONE)
        failed_with_reason(aTHX_ w, env);
    XSRETURN_EMPTY;
}

/* Oribi::Worker::_signals(): handlers of the application for signals that came while we were in C. */
XS_INTERNAL(psgi_xs_signals);
XS_INTERNAL(psgi_xs_signals)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    PERL_ASYNC_CHECK();
    XSRETURN_EMPTY;
}

static void answer_with_perl(pTHX_ struct psgi_worker *w, SV *env, SV *res)
{
    dSP;
    PUSHMARK(SP);
    EXTEND(SP, 3);
    PUSHs(sv_2mortal(newSViv(PTR2IV(w))));
    PUSHs(res);
    PUSHs(env);
    PUTBACK;
    call_sv(w->answer, G_VOID | G_DISCARD | G_EVAL);
    psgi_leave_child(aTHX_ w);
    if (psgi_exception_pending(aTHX))
        failed_with_exception(aTHX_ w, env);
    psgi_body_close(aTHX_ w);
}

static void run_signal_handlers(pTHX_ struct psgi_worker *w)
{
    dSP;
    PUSHMARK(SP);
    PUTBACK;
    call_sv(w->signals, G_VOID | G_DISCARD | G_EVAL);
    psgi_leave_child(aTHX_ w);
    if (psgi_exception_pending(aTHX))
        psgi_log_failure(aTHX_ w, ORIBI_LOG_ERROR, "a signal handler died");
}

/* --- after the reply --- */

/* The answer of one of our own functions in Perl about a value of the application's; NULL when the function died, which
 * is logged as `failure`. */
static SV *ask(pTHX_ struct psgi_worker *w, const char *function, SV *about, const char *failure)
{
    dSP;
    PUSHMARK(SP);
    XPUSHs(about);
    PUTBACK;
    int count = call_pv(function, G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *answer = count == 1 ? POPs : NULL;
    PUTBACK;
    psgi_leave_child(aTHX_ w);
    if (!psgi_exception_pending(aTHX))
        return answer;
    psgi_log_failure(aTHX_ w, ORIBI_LOG_ERROR, failure);
    CLEAR_ERRSV();
    return NULL;
}

/* A tied array runs code of its own when it is read, so a copy is read in its place. */
static AV *list_of(pTHX_ struct psgi_worker *w, SV *ref)
{
    if (!ref || !SvROK(ref) || SvTYPE(SvRV(ref)) != SVt_PVAV)
        return NULL;
    if (SvRMAGICAL(SvRV(ref)))
        ref = ask(aTHX_ w, "Oribi::_list", ref, "psgix.cleanup.handlers cannot be read");
    return ref && SvROK(ref) ? (AV *)SvRV(ref) : NULL;
}

/* Handlers may replace the array and the elements that they are called from, so both are held. */
static void run_cleanup_handlers(pTHX_ struct psgi_worker *w, SV *env, AV *handlers)
{
    sv_2mortal(SvREFCNT_inc_simple_NN((SV *)handlers));
    for (SSize_t i = 0; i <= av_len(handlers); i++) {
        SV **slot = av_fetch(handlers, i, 0);
        if (i == CLEANUP_MAX) {
            oribi_log(ORIBI_LOG_ERROR, "%s: %d cleanup handlers of one request have run, the others are left out",
                      psgi_line(w), CLEANUP_MAX);
            return;
        }
        if (!slot || !SvOK(*slot))
            continue;
        SV *handler = sv_2mortal(SvREFCNT_inc_simple_NN(*slot));
        dSP;
        psgi_after(w);
        PUSHMARK(SP);
        XPUSHs(env);
        PUTBACK;
        call_sv(handler, G_VOID | G_DISCARD | G_EVAL);
        psgi_leave_child(aTHX_ w);
        if (psgi_exception_pending(aTHX))
            psgi_log_failure(aTHX_ w, ORIBI_LOG_ERROR, "a cleanup handler died");
    }
}

/* A handler that has the environment in its closure is part of a circle: environment, array, handler. The handlers
 * have run, so the array lets go of them: our own array, and one of the application's that nothing but the environment
 * refers to. */
static void drop_cleanup_handlers(pTHX_ struct psgi_worker *w, AV *handlers)
{
    bool ours = handlers == w->lent.cleanup_handlers.array;
    if (SvRMAGICAL((SV *)handlers) || SvREADONLY((SV *)handlers) || (!ours && SvREFCNT((SV *)handlers) > 2))
        return; /* 2: the environment's and the one that is held here */
    if (AvMAX(handlers) > CLEANUP_MAX)
        av_undef(handlers);
    else
        av_clear(handlers);
}

/* A tied environment or value, an object with overloading: asking runs code of the application's, which may die. */
static bool ask_harakiri(pTHX_ struct psgi_worker *w, SV *env)
{
    SV *answer = ask(aTHX_ w, "Oribi::_commits", env, "psgix.harakiri.commit cannot be asked, the worker goes on");
    w->harakiri_unclear = answer == NULL;
    return answer && SvTRUE_nomg(answer);
}

static bool wants_harakiri(pTHX_ struct psgi_worker *w, SV *env)
{
    HV *hash = (HV *)SvRV(env);
    bool plain = !SvRMAGICAL((SV *)hash);
    SV *commit = plain ? psgi_env_get(aTHX_ w, hash, PSGI_KEY_HARAKIRI_COMMIT) : NULL;
    if (plain && (!commit || (!SvGMAGICAL(commit) && !SvAMAGIC(commit))))
        return commit && SvTRUE_nomg(commit);
    return !w->harakiri_unclear && ask_harakiri(aTHX_ w, env);
}

/* From here on the worker begins no other request, and the head of an answer that is still to be made says what
 * becomes of the connection. */
static void heed_harakiri(pTHX_ struct psgi_worker *w, SV *env)
{
    if (w->harakiri || !wants_harakiri(aTHX_ w, env))
        return;
    w->harakiri = true;
    oribi_worker_retire(w->core);
}

static void after_reply(pTHX_ struct psgi_worker *w, SV *env)
{
    AV *handlers = list_of(aTHX_ w, psgi_env_get(aTHX_ w, (HV *)SvRV(env), PSGI_KEY_CLEANUP_HANDLERS));
    if (handlers && av_len(handlers) >= 0) {
        run_cleanup_handlers(aTHX_ w, env, handlers);
        drop_cleanup_handlers(aTHX_ w, handlers);
    }
    heed_harakiri(aTHX_ w, env);
}

/* --- the call --- */

static void open_call(struct psgi_worker *w, struct oribi_req *req)
{
    w->req = req;
    w->state = PSGI_OPEN;
    w->serial++;
    memset(w->looked_at, 0, sizeof w->looked_at);
    w->responded = false;
    w->told_gone = false;
    w->harakiri_unclear = false;
    w->write_count = 0;
}

static void before_reply(pTHX_ struct psgi_worker *w, SV *env, SV *res)
{
    psgi_input_answered(aTHX_ w, env, res);
    psgi_socket_back(w);
    heed_harakiri(aTHX_ w, env);
}

static void call_app(pTHX_ struct psgi_worker *w, SV *env)
{
    dSP;
    PUSHMARK(SP);
    XPUSHs(env);
    PUTBACK;
    errno = 0; /* $! is the application's; what our system calls left there would puzzle it */
    call_sv(w->app, G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *res = POPs;
    PUTBACK;
    psgi_leave_child(aTHX_ w);
    if (UNLIKELY(psgi_exception_pending(aTHX))) {
        failed_with_exception(aTHX_ w, env);
        return;
    }
    before_reply(aTHX_ w, env, res);
    int rc = psgi_reply_plain(aTHX_ w, res);
    if (rc == PSGI_SLOW)
        answer_with_perl(aTHX_ w, env, res);
    else if (rc == PSGI_BAD)
        failed_with_reason(aTHX_ w, env);
}

/* Without its body the application would take the request for another. */
static void refuse_without_body(struct psgi_worker *w)
{
    oribi_thread_log_about(oribi_thread(w->core, 0));
    oribi_log(ORIBI_LOG_ERROR, "%s: the application cannot have the request's body: %s", psgi_line(w),
              strerror(w->input.error));
    oribi_thread_log_about(NULL);
    w->input.error = 0;
    fail_call(w, 503);
}

/* A call of a WebSocket. */
static void serve_socket(pTHX_ struct psgi_worker *w)
{
    bool known;
    if (UNLIKELY(w->failure_page))
        psgi_failure_watch(aTHX_ w);
    if (!psgi_websocket_call(aTHX_ w, &known)) {
        failed_with_exception(aTHX_ w, NULL);
        return;
    }
    if (w->state != PSGI_OPEN)
        return;
    if (known)
        (void)oribi_socket_reply(w->req); /* a frontend that has gone is nothing that the application could mend */
    else
        oribi_socket_unknown(w->req);
    psgi_call_ended(w);
}

static void serve(pTHX_ struct psgi_worker *w, struct oribi_req *req)
{
    ENTER;
    SAVETMPS;
    open_call(w, req);
    if (UNLIKELY(oribi_socket_called(req))) {
        serve_socket(aTHX_ w);
        FREETMPS;
        LEAVE;
        come_back(w);
        leave_child_quietly(aTHX_ w);
        return;
    }
    HV *env = psgi_env_build(aTHX_ w, req);
    if (env) {
        struct psgi_template *template = w->used;
        ENTER;
        SAVEFREESV(env);
        SV *ref = sv_2mortal(newRV_inc((SV *)env));
        if (UNLIKELY(w->failure_page))
            psgi_failure_watch(aTHX_ w);
        if (UNLIKELY(w->input.error)) {
            refuse_without_body(w);
        } else {
            call_app(aTHX_ w, ref);
            after_reply(aTHX_ w, ref);
        }
        FREETMPS; /* references to the environment, unless they are kept */
        psgi_env_end(aTHX_ w, template, env);
        LEAVE;
    } else {
        psgi_call_ended(w); /* with 400, by the core: the path has a bad percent escape */
    }
    psgi_lent_recycle(aTHX_ w);
    FREETMPS; /* what stood in the slots of a glob that was replaced: Perl makes it mortal */
    LEAVE;
    come_back(w);
    leave_child_quietly(aTHX_ w);
}

/* Shows what this process does in the list of processes. Assigning to $0 does that; the application keeps the value
 * it knows. */
static void show_title(pTHX_ struct psgi_worker *w)
{
    char text[ORIBI_TITLE_CAP];
    if (oribi_title_text(&w->title, text, sizeof text) > 0)
        psgi_title(aTHX_ text);
}

void psgi_title(pTHX_ const char *text)
{
    SV *name = GvSVn(gv_fetchpvs("0", GV_ADD, SVt_PV));
    SV *known = newSVsv(name);
    sv_setpv_mg(name, text);
    sv_setsv(name, known); /* without magic: only Perl sees this */
    SvREFCNT_dec(known);
}

/* True when a mold is to be made of this worker. */
static bool turn(struct psgi_worker *w)
{
    return oribi_process_due(w->process) && oribi_process_turn(w->process);
}

static void rest(pTHX_ struct psgi_worker *w)
{
    int64_t title_ms = w->process ? oribi_title_at_rest(&w->title, oribi_clock_ms()) : -1;
    if (title_ms == 0)
        show_title(aTHX_ w);
    if (psgi_wait_begin(aTHX_ psgi_wake_worker, w->core))
        oribi_worker_wait_for(w->core, title_ms ? title_ms : -1);
    psgi_wait_end();
}

bool psgi_worker_run(pTHX_ struct psgi_worker *w)
{
    bool wants_mold;
    dSP;
    PUSHSTACKi(PERLSI_UNKNOWN);
    w->stack = PL_curstackinfo;
    ENTER;
    SAVEDESTRUCTOR_X(loop_left, w);
    psgi_signals_watch(w);
    if (w->process)
        psgi_signals_guard(aTHX);
    while (!(wants_mold = turn(w))) {
        struct oribi_req *req = oribi_worker_take(w->core);
        if (req) {
            if (UNLIKELY(oribi_title_in_call(&w->title)))
                show_title(aTHX_ w);
            serve(aTHX_ w, req);
        } else {
            if (oribi_worker_done(w->core))
                break;
            rest(aTHX_ w);
        }
        if (UNLIKELY(PL_sig_pending))
            run_signal_handlers(aTHX_ w);
    }
    LEAVE;
    POPSTACK;
    return wants_mold;
}

/* Sets the keys that Plack::Middleware::XSendfile looks for. The middleware reads one map, and names files outside of
 * it by their own path: which of several is meant cannot be said, and then only what the application gives the
 * middleware counts. */
static void announce_sendfile(pTHX_ struct psgi_worker *w, const struct oribi_options *options)
{
    char mapping[ORIBI_SENDFILE_MAPPING_CAP];
    w->sendfile = options->sendfile_root.count + options->sendfile_map.count > 0;
    if (oribi_sendfile_mapping(options, false, mapping, sizeof mapping))
        w->accel_mapping = savepv(mapping);
    if (options->sendfile_root.count > 0)
        w->sendfile_type = "X-Sendfile";
    else if (w->accel_mapping)
        w->sendfile_type = "X-Accel-Redirect";
}

struct psgi_worker *psgi_worker_new(pTHX_ struct oribi_worker *core, const struct oribi_options *options, SV *self,
                                    SV *app, bool multiprocess)
{
    struct psgi_worker *w;
    Newxz(w, 1, struct psgi_worker);
    w->core = core;
    w->early_hints = options->early_hints;
    w->request_ids = options->request_id;
    announce_sendfile(aTHX_ w, options);
    w->interpreter = (void *)PERL_GET_THX;
    w->self = self;
    w->app = newSVsv(app);
    w->answer = newRV_noinc((SV *)newXS(NULL, psgi_xs_answer, __FILE__));
    w->signals = newRV_noinc((SV *)newXS(NULL, psgi_xs_signals, __FILE__));
    w->close = psgi_body_closer(aTHX);
    psgi_env_init(aTHX_ w, multiprocess);
    oribi_worker_show_frames(core, psgi_frames, w);
    return w;
}

void psgi_worker_free(pTHX_ struct psgi_worker *w)
{
    psgi_signals_watch(NULL);
    psgi_env_deinit(aTHX_ w);
    Safefree(w->accel_mapping);
    SvREFCNT_dec(w->app);
    SvREFCNT_dec(w->answer);
    SvREFCNT_dec(w->signals);
    SvREFCNT_dec(w->close);
    SvREFCNT_dec(w->failure_page);
    SvREFCNT_dec(w->die_handler);
    SvREFCNT_dec(w->open_body);
    SvREFCNT_dec(w->writer);
    Safefree(w->headers);
    Safefree(w->iov);
    oribi_worker_destroy(w->core);
    Safefree(w);
}

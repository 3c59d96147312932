/* Report of a failed call: its lines in the log, and in development its page.
 *
 * The page: lib/Oribi/Development.pm gives it. A die in Perl has no trace, so each
 * call has a $SIG{__DIE__} that keeps the frames; it is local to the call, and calls the one that was there. */
#include "xs/binding.h"

#include "oribi/worker/socket.h"

/* --- words for the log --- */

SV *psgi_text(pTHX_ SV *sv)
{
    SV *copy = sv_2mortal(newSVsv(sv)); /* sv may be $@, which the eval below empties */
    if (!SvROK(copy) || !SvAMAGIC(copy))
        return copy;
    dSP;
    PUSHMARK(SP);
    XPUSHs(copy);
    PUTBACK;
    int count = call_pv("Oribi::_text", G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *text = count == 1 ? POPs : NULL;
    PUTBACK;
    if (text && SvPOK(text))
        return text;
    return sv_2mortal(newSVpvf("an exception of class %s that cannot be printed", sv_reftype(SvRV(copy), 1)));
}

/* NUL, with which no text of C goes on, is shown as the log shows other bytes. */
static void append_words(pTHX_ SV *head, const char *p, const char *end)
{
    const char *nul;
    while ((nul = (const char *)memchr(p, '\0', (size_t)(end - p)))) {
        sv_catpvn(head, p, (STRLEN)(nul - p));
        sv_catpvs(head, "\\x00");
        p = nul + 1;
    }
    sv_catpvn(head, p, (STRLEN)(end - p));
}

/* "GET /path: what: Class: text"; further lines follow as a block. An object whose text begins with its class names
 * itself. */
void psgi_log_failure(pTHX_ const struct psgi_worker *w, enum oribi_log_level level, const char *what)
{
    const char *class = sv_isobject(ERRSV) ? sv_reftype(SvRV(ERRSV), 1) : "";
    SV *text = psgi_text(aTHX_ ERRSV);
    STRLEN n;
    const char *p = SvPV(text, n);
    bool named = !*class || instr(p, class);
    while (n > 0 && p[n - 1] == '\n')
        n--;
    const char *newline = (const char *)memchr(p, '\n', n);
    const char *end = p + n;
    SV *head = sv_2mortal(newSVpvf("%s: %s: %s%s", psgi_line(w), what, named ? "" : class, named ? "" : ": "));
    append_words(aTHX_ head, p, newline ? newline : p + n);
    oribi_thread_log_about(oribi_thread(w->core, 0));
    if (newline)
        oribi_log_block(level, SvPV_nolen(head), newline + 1, (uint32_t)(end - newline - 1));
    else
        oribi_log(level, "%s", SvPV_nolen(head));
    oribi_thread_log_about(NULL);
}

/* --- pages of development --- */

static const char theirs[] = "Oribi::Development::theirs";

void psgi_failure_show(pTHX_ struct psgi_worker *w, SV *page, SV *die_handler)
{
    SvREFCNT_dec(w->failure_page);
    SvREFCNT_dec(w->die_handler);
    w->failure_page = newSVsv(page);
    w->die_handler = newSVsv(die_handler);
}

/* Sets the handler as `local $SIG{__DIE__} = …` does. */
void psgi_failure_watch(pTHX_ struct psgi_worker *w)
{
    sv_setsv(get_sv(theirs, GV_ADD), PL_diehook ? PL_diehook : &PL_sv_undef);
    SAVEGENERICSV(PL_diehook);
    PL_diehook = SvREFCNT_inc(w->die_handler);
}

bool psgi_failure_answer(pTHX_ struct psgi_worker *w, SV *error, SV *env, int status)
{
    if (w->state != PSGI_OPEN)
        return false;
    dSP;
    PUSHMARK(SP);
    EXTEND(SP, 2);
    PUSHs(error);
    PUSHs(env ? env : &PL_sv_undef);
    PUTBACK;
    int count = call_sv(w->failure_page, G_LIST | G_EVAL);
    SPAGAIN;
    SV *page = count == 2 ? POPs : NULL; /* of a WebSocket: the place */
    SV *type = count == 2 ? POPs : NULL; /* of a WebSocket: the text */
    SP -= count == 2 ? 0 : count;
    PUTBACK;
    psgi_leave_child(aTHX_ w);
    if (!page || psgi_exception_pending(aTHX)) {
        psgi_log_failure(aTHX_ w, ORIBI_LOG_ERROR, "the page of this error cannot be made");
        CLEAR_ERRSV();
        return false;
    }
    STRLEN n;
    const char *p = SvPV(page, n);
    if (env) {
        oribi_reply_failure(w->req, status, SvPV_nolen(type), oribi_slice(p, n));
    } else {
        STRLEN len;
        const char *text = SvPV(type, len);
        oribi_socket_reply_failure(w->req, status, "->", oribi_slice(text, len), oribi_slice(p, n));
    }
    psgi_call_ended(w);
    return true;
}

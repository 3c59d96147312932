/* Signals: keeping the handlers of the program around a server that installs its own, and what a manager does with
 * the ones it traps; in a worker, our handlers under a %SIG that applications change, and waiting in C that a signal
 * for Perl ends. */
#include "xs/binding.h"

#include "oribi/base/os/os.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/base/signals.h"

#include <stdatomic.h>

/* The signals whose handlers belong to the core. Perl's %SIG knows nothing of those handlers and could not put them
 * back. */
static const int core_signals[] = {SIGINT,  SIGTERM,  SIGQUIT, SIGHUP,  SIGUSR1,
                                   SIGUSR2, SIGWINCH, SIGTTIN, SIGTTOU, SIGCHLD};

enum { CORE_SIGNALS = sizeof core_signals / sizeof core_signals[0] };

SV *psgi_signals_keep(pTHX)
{
    struct sigaction actions[CORE_SIGNALS];
    for (int i = 0; i < CORE_SIGNALS; i++)
        (void)sigaction(core_signals[i], NULL, &actions[i]); /* fails only for numbers that do not exist */
    return newSVpvn((const char *)actions, sizeof actions);
}

void psgi_signals_restore(pTHX_ SV *kept, bool child)
{
    struct sigaction actions[CORE_SIGNALS];
    if (SvCUR(kept) != sizeof actions)
        croak("Oribi: these are no kept signals");
    memcpy(actions, SvPVX(kept), sizeof actions);
    for (int i = 0; i < CORE_SIGNALS; i++)
        if (child || core_signals[i] != SIGCHLD)
            (void)sigaction(core_signals[i], &actions[i], NULL);
}

void psgi_signals_trap(pTHX_ struct oribi_prefork *prefork, AV *manager)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    AV *traps = (AV *)SvRV(*av_fetch(manager, 0, 0)); /* our own module made them */
    AV *left = (AV *)SvRV(*av_fetch(manager, 1, 0));
    for (SSize_t i = 0; i <= av_len(traps); i++) {
        AV *trap = (AV *)SvRV(*av_fetch(traps, i, 0));
        int64_t interval_ms = (int64_t)(SvNV(*av_fetch(trap, 2, 0)) * 1000);
        if (oribi_prefork_trap_named(prefork, SvPV_nolen(*av_fetch(trap, 0, 0)), SvPV_nolen(*av_fetch(trap, 1, 0)),
                                     interval_ms, error) < 0)
            croak("%s\n", error);
    }
    for (SSize_t i = 0; i <= av_len(left); i++)
        oribi_prefork_leave(prefork, oribi_signal_number(SvPV_nolen(*av_fetch(left, i, 0))));
}

/* --- a worker under %SIG --- */

/* Perl's handlers are sigaction(2)'s: one that an application sets removes ours, and when the scope of a `local`
 * ends, Perl, which knows nothing of ours, puts the default there. So the entries of %SIG carry magic of our own
 * behind Perl's: when Perl has acted, ours is put back, and calls what Perl has set. */

static const int guarded[] = {SIGTERM, SIGQUIT, SIGINT, SIGUSR1, SIGUSR2};

enum { GUARDED = sizeof guarded / sizeof guarded[0] };

/* what %SIG held when the worker began: handlers of the mold's time, which ours stand for */
static SV *at_start[GUARDED];

static int settle(pTHX_ SV *sv, MAGIC *mg)
{
    int index = (int)PTR2IV(mg->mg_ptr);
    PERL_UNUSED_ARG(sv);
    if (PL_psig_ptr[guarded[index]] == at_start[index])
        oribi_signals_retake(guarded[index]);
    else
        oribi_signals_mend(guarded[index], false);
    return 0;
}

static int settle_local(pTHX_ SV *sv, MAGIC *mg);

static const MGVTBL guard_vtbl = {NULL, settle, NULL, settle, NULL, NULL, NULL, settle_local};

/* Behind Perl's magic, which is to act first. */
static void guard(pTHX_ SV *sv, IV index)
{
    MAGIC *mg = sv_magicext(sv, NULL, PERL_MAGIC_ext, &guard_vtbl, INT2PTR(char *, index), 0);
    mg->mg_flags |= MGf_LOCAL;
    if (!mg->mg_moremagic)
        return;
    MAGIC *last = mg->mg_moremagic;
    SvMAGIC_set(sv, last);
    while (last->mg_moremagic)
        last = last->mg_moremagic;
    last->mg_moremagic = mg;
    mg->mg_moremagic = NULL;
}

/* `local` makes a second scalar, to which it copies the magic one by one. */
static int settle_local(pTHX_ SV *sv, MAGIC *mg)
{
    guard(aTHX_ sv, PTR2IV(mg->mg_ptr));
    return 0;
}

void psgi_signals_guard(pTHX)
{
    HV *handlers = get_hv("SIG", GV_ADD);
    for (IV i = 0; i < GUARDED; i++) {
        const char *name = PL_sig_name[guarded[i]];
        SV **entry = hv_fetch(handlers, name, (I32)strlen(name), 1);
        if (!entry || (SvTYPE(*entry) >= SVt_PVMG && mg_findext(*entry, PERL_MAGIC_ext, &guard_vtbl)))
            continue;
        at_start[i] = SvREFCNT_inc(PL_psig_ptr[guarded[i]]);
        guard(aTHX_ * entry, i);
    }
}

/* --- what the deadline's signal is about --- */

bool psgi_worker_overdue(const struct psgi_worker *w)
{
    bool ours = w->interpreter == (void *)PERL_GET_THX && !oribi_worker_abandoned(w->core);
    return ours && oribi_thread_overdue(oribi_thread(w->core, 0)) != 0;
}

bool psgi_worker_take_gone(struct psgi_worker *w)
{
    bool ours = w->interpreter == (void *)PERL_GET_THX && !oribi_worker_abandoned(w->core);
    bool taken = ours && oribi_thread_take_gone(oribi_thread(w->core, 0));
    bool gone = taken && w->state != PSGI_NONE;
    w->told_gone |= gone;
    return gone;
}

bool psgi_cancelled(const struct psgi_worker *w)
{
    return w->told_gone || (w->state != PSGI_NONE && oribi_req_gone(w->req));
}

/* --- waiting in C --- */

typedef void (*action_fn)(int, siginfo_t *, void *);

static action_fn perls_handler;
static void (*volatile wake_sleeper)(void *); /* NULL: no wait in the core, nor one about to begin */
static void *volatile sleeper;
static struct psgi_worker *volatile watched; /* whose calls have a deadline */

void psgi_signals_watch(struct psgi_worker *w)
{
    watched = w;
}

/* Perl's handler only notes the signal: for the deadline's, where the call stands is looked at now, since it moves
 * on before Perl acts. A wait in the core must end for Perl to act upon it, also when the signal came
 * between the look at that note and the system call. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    perls_handler(number, info, context);
    if (watched && number == oribi_os_runtime_signal() && psgi_worker_overdue(watched))
        psgi_note_frames(watched);
    void (*wake)(void *) = wake_sleeper;
    if (wake)
        wake(sleeper);
    errno = kept;
}

void psgi_wake_worker(void *worker)
{
    oribi_worker_wake((struct oribi_worker *)worker);
}

void psgi_wake_process(void *process)
{
    oribi_process_wake((struct oribi_process *)process);
}

bool psgi_wait_begin(pTHX_ void (*wake)(void *), void *argument)
{
    sleeper = argument;
    atomic_signal_fence(memory_order_seq_cst);
    wake_sleeper = wake;
    atomic_signal_fence(memory_order_seq_cst);
    return !PL_sig_pending;
}

void psgi_wait_end(void)
{
    wake_sleeper = NULL;
}

/* Handlers that were set before this module was loaded are replaced one by one; those set later get ours from Perl. */
void psgi_signals_boot(pTHX)
{
    if (perls_handler)
        return; /* a second interpreter */
    perls_handler = (action_fn)(void (*)(void))PL_csighandlerp;
    PL_csighandlerp = (Sighandler_t)(void (*)(void))on_signal;
    for (int number = 1; number < SIG_SIZE; number++) {
        struct sigaction action;
        if (!PL_psig_ptr[number] || sigaction(number, NULL, &action) < 0 ||
            (action_fn)(void (*)(void))action.sa_handler != perls_handler)
            continue;
        action.sa_sigaction = on_signal;
        (void)sigaction(number, &action, NULL);
    }
}

/* Signals: keeping the handlers of the program around a server that installs its own, and what a manager does with the ones it traps. */
#include "xs/binding.h"

#include "oribi/server/prefork.h"

/* The signals whose handlers belong to the core. Perl's %SIG knows nothing of those handlers and could not put them back. */
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

void psgi_signals_restore(pTHX_ SV *kept)
{
    struct sigaction actions[CORE_SIGNALS];
    if (SvCUR(kept) != sizeof actions)
        croak("Oribi: these are no kept signals");
    memcpy(actions, SvPVX(kept), sizeof actions);
    for (int i = 0; i < CORE_SIGNALS; i++)
        (void)sigaction(core_signals[i], &actions[i], NULL);
}

void psgi_signals_trap(pTHX_ struct oribi_prefork *prefork, AV *traps)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    for (SSize_t i = 0; i <= av_len(traps); i++) {
        AV *trap = (AV *)SvRV(*av_fetch(traps, i, 0)); /* our own module made it */
        const char *name = SvPV_nolen(*av_fetch(trap, 0, 0));
        const char *send = SvPV_nolen(*av_fetch(trap, 1, 0));
        int numbers[] = {oribi_signal_number(name), *send ? oribi_signal_number(send) : 0};
        if (!numbers[0] || (*send && !numbers[1]))
            croak("trap_signals: there is no signal %s\n", numbers[0] ? send : name);
        int64_t interval_ms = (int64_t)(SvNV(*av_fetch(trap, 2, 0)) * 1000);
        if (oribi_prefork_trap(prefork, numbers[0], numbers[1], interval_ms, error) < 0)
            croak("%s\n", error);
    }
}

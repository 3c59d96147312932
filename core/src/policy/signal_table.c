/* The table. Conditions that a column cannot say stand at the effect, in the header. */
#include "oribi/policy/signal_table.h"

#include "oribi/base/os/os_process.h"

#include <signal.h>

/* clang-format off */
static const struct {
    int number;
    enum oribi__effect effects[ORIBI__SIGNALLED_ROLES];
} table[] = {
    /*            supervisor            mold            worker          manager               manager's worker */
    {SIGTERM,  {ORIBI__STOPS,         ORIBI__ENDS,    ORIBI__DRAINS,  ORIBI__STOPS,         ORIBI__DRAINS}},
    {SIGQUIT,  {ORIBI__STOPS,         ORIBI__ENDS,    ORIBI__DRAINS,  ORIBI__STOPS,         ORIBI__DRAINS}},
    {SIGINT,   {ORIBI__STOPS_AT_ONCE, ORIBI__ENDS,    ORIBI__ENDS,    ORIBI__STOPS_AT_ONCE, ORIBI__RAISES}},
    {SIGHUP,   {ORIBI__RELOADS,       ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__RELOADS,       ORIBI__PROGRAM}},
    {SIGUSR1,  {ORIBI__REOPENS,       ORIBI__REOPENS, ORIBI__REOPENS, ORIBI__REOPENS,       ORIBI__REOPENS}},
    {SIGUSR2,  {ORIBI__UPGRADES,      ORIBI__NOTHING, ORIBI__MOLDS,   ORIBI__PROGRAM,       ORIBI__PROGRAM}},
    {SIGWINCH, {ORIBI__EMPTIES,       ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__PROGRAM,       ORIBI__PROGRAM}},
    {SIGTTIN,  {ORIBI__ADDS,          ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__ADDS,          ORIBI__PROGRAM}},
    {SIGTTOU,  {ORIBI__REMOVES,       ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__REMOVES,       ORIBI__PROGRAM}},
    {SIGCHLD,  {ORIBI__LOOKS,         ORIBI__PROGRAM, ORIBI__PROGRAM, ORIBI__LOOKS,         ORIBI__PROGRAM}},
    {SIGPIPE,  {ORIBI__NOTHING,       ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__NOTHING,       ORIBI__NOTHING}},
    {SIGXFSZ,  {ORIBI__NOTHING,       ORIBI__NOTHING, ORIBI__NOTHING, ORIBI__NOTHING,       ORIBI__NOTHING}},
};
/* clang-format on */

enum { ROWS = sizeof(table) / sizeof(table[0]) };

_Static_assert((int)ROWS <= (int)ORIBI__SIGNALS_MAX, "room for every row");

enum oribi__effect oribi__signal_effect(int number, enum oribi__signalled role)
{
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].number == number)
            return table[i].effects[role];
    return ORIBI__NOTHING;
}

/* oribi_signals_install() handles these in any case. */
static bool always_handled(int number)
{
    return number == SIGCHLD || number == SIGPIPE || number == SIGXFSZ;
}

size_t oribi__signals_handled(enum oribi__signalled role, int *numbers)
{
    size_t count = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].effects[role] != ORIBI__PROGRAM && !always_handled(table[i].number))
            numbers[count++] = table[i].number;
    return count;
}

bool oribi__signal_event(enum oribi__effect effect, struct oribi_policy_event *event)
{
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_TICK};
    switch (effect) {
    case ORIBI__STOPS:
        event->type = ORIBI_EVENT_STOP;
        return true;
    case ORIBI__STOPS_AT_ONCE:
        event->type = ORIBI_EVENT_STOP_NOW;
        return true;
    case ORIBI__RELOADS:
        event->type = oribi_process_terminal_gone() ? ORIBI_EVENT_STOP : ORIBI_EVENT_RELOAD;
        return true;
    case ORIBI__UPGRADES:
        event->type = ORIBI_EVENT_UPGRADE;
        return true;
    case ORIBI__REOPENS:
        event->type = ORIBI_EVENT_REOPEN;
        return true;
    case ORIBI__EMPTIES:
        event->type = ORIBI_EVENT_WINCH;
        return !oribi_process_has_terminal();
    case ORIBI__ADDS:
    case ORIBI__REMOVES:
        event->type = ORIBI_EVENT_RESIZE;
        event->delta = effect == ORIBI__ADDS ? 1 : -1;
        return true;
    case ORIBI__NOTHING:
    case ORIBI__PROGRAM:
    case ORIBI__LOOKS: /* children that have ended are looked for in every turn */
    case ORIBI__ENDS:
    case ORIBI__DRAINS:
    case ORIBI__MOLDS:
    case ORIBI__RAISES:
        break;
    }
    return false;
}

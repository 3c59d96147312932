/* Counters that outlive workers. */
#include "oribi/observe/totals.h"

#include "oribi/policy/causes.h"

#include <string.h>

static const char *const names[ORIBI__EXIT_REASONS] = {
    "asked", "recycled", "call_deadline", "boot_timeout", "shutdown_timeout", "signal", "exit_code", "other"};

/* The beginnings of the policy's lines: the first that fits counts. */
static const struct {
    const char *line;
    enum oribi__exit_reason reason;
} lines[] = {
    {oribi__cause_asked, ORIBI__EXIT_ASKED},
    {"exit code 0", ORIBI__EXIT_RECYCLED},
    {oribi__cause_age_max, ORIBI__EXIT_RECYCLED},
    {oribi__cause_memory_max, ORIBI__EXIT_RECYCLED},
    {oribi__cause_refork, ORIBI__EXIT_RECYCLED},
    {oribi__cause_call_deadline, ORIBI__EXIT_CALL_DEADLINE},
    {oribi__cause_hang, ORIBI__EXIT_CALL_DEADLINE},
    {oribi__cause_boot_timeout, ORIBI__EXIT_BOOT_TIMEOUT},
    {oribi__cause_shutdown_timeout, ORIBI__EXIT_SHUTDOWN_TIMEOUT},
    {"signal ", ORIBI__EXIT_SIGNAL},
    {"exit code ", ORIBI__EXIT_CODE},
    {"", ORIBI__EXIT_OTHER},
};

const char *oribi__exit_reason_name(uint32_t i)
{
    return names[i];
}

void oribi__totals_exit(struct oribi__totals *totals, const struct oribi_slot *slot, const char *reason)
{
    size_t i = 0;
    while (strncmp(reason, lines[i].line, strlen(lines[i].line)) != 0)
        i++; /* the last one fits every line */
    totals->exits[lines[i].reason]++;
    oribi_slot_fold(totals->ended, slot);
}

uint64_t oribi__totals_exits(const struct oribi__totals *totals)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < ORIBI__EXIT_REASONS; i++)
        count += totals->exits[i];
    return count;
}

void oribi__totals_reloading(struct oribi__totals *totals, int64_t now_ms)
{
    totals->reload_began_ms = now_ms;
}

void oribi__totals_reloaded(struct oribi__totals *totals, bool failed, int64_t now_ms)
{
    if (failed)
        totals->reloads_failed++;
    else
        totals->reloads_done++;
    totals->reload_ms = totals->reload_began_ms ? now_ms - totals->reload_began_ms : 0;
    totals->reload_began_ms = 0;
}

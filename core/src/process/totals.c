/* Counters that outlive workers. */
#include "process/totals.h"

#include "process/policy_private.h"

#include <string.h>

/* The beginnings of the policy's lines, in the order of enum oribi__exit_reason: the first that fits counts. */
static const struct {
    const char *name;
    const char *line;
} reasons[ORIBI__EXIT_REASONS] = {
    {"asked", oribi__cause_asked},
    {"recycled", "exit code 0"},
    {"call_deadline", oribi__cause_call_deadline},
    {"boot_timeout", oribi__cause_boot_timeout},
    {"shutdown_timeout", oribi__cause_shutdown_timeout},
    {"signal", "signal "},
    {"exit_code", "exit code "},
    {"other", ""},
};

const char *oribi__exit_reason_name(uint32_t i)
{
    return reasons[i].name;
}

void oribi__totals_exit(struct oribi__totals *totals, const struct oribi_slot *slot, const char *reason)
{
    uint32_t i = 0;
    while (strncmp(reason, reasons[i].line, strlen(reasons[i].line)) != 0)
        i++; /* the last one fits every line */
    totals->exits[i]++;
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

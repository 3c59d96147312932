/* Consequences of a signal, as the handlers and the documents have them. */
#include "policy/signal_table.c"

#include "oribi/base/signals.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of which the page has one where the table has this effect. */
static const char *const words[][3] = {
    [ORIBI__NOTHING] = {"nothing"},
    [ORIBI__PROGRAM] = {"program", "application's"},
    [ORIBI__LOOKS] = {"looks for ended children"},
    [ORIBI__STOPS] = {"stop", "as `TERM`"},
    [ORIBI__STOPS_AT_ONCE] = {"stop now"},
    [ORIBI__RELOADS] = {"reload"},
    [ORIBI__UPGRADES] = {"upgrade"},
    [ORIBI__REOPENS] = {"reopens", "as the supervisor"},
    [ORIBI__EMPTIES] = {"no workers"},
    [ORIBI__ADDS] = {"one worker more", "as the supervisor"},
    [ORIBI__REMOVES] = {"fewer", "as the supervisor"},
    [ORIBI__ENDS] = {"exit 0", "as `TERM`"},
    [ORIBI__DRAINS] = {"drains", "as `TERM`", "until its loop first asks"},
    [ORIBI__MOLDS] = {"a mold is made"},
    [ORIBI__RAISES] = {"as the program has it"},
};

static bool says(const char *cell, enum oribi__effect effect)
{
    for (size_t i = 0; i < 3; i++)
        if (words[effect][i] && strstr(cell, words[effect][i]))
            return true;
    return false;
}

/* One row of the page: `signals` is its first cell. Gives how many signals it names. */
static int compare_row(char *signals, char *cells[ORIBI__SIGNALLED_ROLES])
{
    int count = 0;
    for (char *name = strchr(signals, '`'); name; name = strchr(name + strlen(name) + 1, '`')) {
        char *end = strchr(++name, '`');
        if (!end)
            break;
        *end = '\0';
        int number = oribi_signal_number(name);
        ok_named(number > 0, "%s is a signal", name);
        for (int role = 0; role < ORIBI__SIGNALLED_ROLES; role++)
            ok_named(says(cells[role], oribi__signal_effect(number, (enum oribi__signalled)role)), "%s: %s", name,
                     cells[role]);
        count++;
    }
    return count;
}

static void test_the_page_says_what_the_table_has(void)
{
    char line[2048];
    int count = 0;
    FILE *page = fopen("../doc/internals/supervisor.md", "r");
    ok(page != NULL);
    while (page && fgets(line, sizeof(line), page)) {
        char *cells[1 + ORIBI__SIGNALLED_ROLES];
        int found = 0;
        char *rest = line;
        if (strncmp(line, "| `", 3) != 0)
            continue;
        rest++;
        for (char *bar = strchr(rest, '|'); bar && found < 1 + ORIBI__SIGNALLED_ROLES; bar = strchr(rest, '|')) {
            *bar = '\0';
            cells[found++] = rest;
            rest = bar + 1;
        }
        if (found == 1 + ORIBI__SIGNALLED_ROLES)
            count += compare_row(cells[0], cells + 1);
    }
    if (page)
        (void)fclose(page);
    ok_eq(count, ROWS);
}

static void test_every_role_handles_its_own_signals(void)
{
    int numbers[ORIBI__SIGNALS_MAX];
    ok_eq(oribi__signals_handled(ORIBI__IN_SUPERVISOR, numbers), 9);
    ok_eq(oribi__signals_handled(ORIBI__IN_MANAGER, numbers), 7);
    ok_eq(oribi__signals_handled(ORIBI__IN_JOB_WORKER, numbers), 4);
    ok(numbers[0] == SIGTERM && numbers[1] == SIGQUIT && numbers[2] == SIGINT && numbers[3] == SIGUSR1);
    ok_eq(oribi__signal_effect(SIGSEGV, ORIBI__IN_WORKER), ORIBI__NOTHING);
}

static void test_effects_become_events(void)
{
    struct oribi_policy_event event;
    ok(oribi__signal_event(ORIBI__STOPS, &event) && event.type == ORIBI_EVENT_STOP);
    ok(oribi__signal_event(ORIBI__STOPS_AT_ONCE, &event) && event.type == ORIBI_EVENT_STOP_NOW);
    ok(oribi__signal_event(ORIBI__UPGRADES, &event) && event.type == ORIBI_EVENT_UPGRADE);
    ok(oribi__signal_event(ORIBI__REOPENS, &event) && event.type == ORIBI_EVENT_REOPEN);
    ok(oribi__signal_event(ORIBI__ADDS, &event) && event.type == ORIBI_EVENT_RESIZE && event.delta == 1);
    ok(oribi__signal_event(ORIBI__REMOVES, &event) && event.type == ORIBI_EVENT_RESIZE && event.delta == -1);
    ok(!oribi__signal_event(ORIBI__LOOKS, &event) && !oribi__signal_event(ORIBI__NOTHING, &event) &&
       !oribi__signal_event(ORIBI__PROGRAM, &event));
}

int main(void)
{
    test_the_page_says_what_the_table_has();
    test_every_role_handles_its_own_signals();
    test_effects_become_events();
    return done_testing();
}

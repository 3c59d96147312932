/* Signal handlers of a process of ours. There is one set per process, because sigaction(2) gives a handler no
 * argument.
 *
 * After a fork the child inherits the handlers but not our role: a handler that finds itself in another process than
 * the one that installed it restores what was there before us and raises the signal again, so that children which
 * the application forks can be stopped as ever. */
#ifndef ORIBI_BASE_SIGNALS_H
#define ORIBI_BASE_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>

/* Called in the handler: may call async-signal-safe functions only. */
typedef void (*oribi_signal_fn)(void *self, int number);

/* Handles INT, TERM, QUIT, HUP, USR1, USR2, WINCH, TTIN and TTOU by `fn`; PIPE by doing nothing, which unlike
 * SIG_IGN programs started by us do not inherit; and CHLD by `fn` and then whatever handled it before, when
 * `children` is set, else exactly as it was before us. Replaces what an earlier call in this process or its parent
 * installed. */
void oribi_signals_install(oribi_signal_fn fn, void *self, int children);

/* keep: for a process that has begun to make files or processes which a signal would leave behind. Signals are kept
 * until oribi_signals_install(), whose `fn` gets them, or until oribi_signals_keep_not(), which raises them again. Both
 * do nothing once handlers are installed. */
void oribi_signals_keep(void);
void oribi_signals_keep_not(void);

/* Handles these instead of those above from the next install on, in this process and its children; none: those above
 * again. PIPE and CHLD are handled as ever. */
void oribi_signals_choose(const int *numbers, size_t count);

/* The program may put handlers of its own in the place of ours, for good or for a while, and a runtime that knows
 * nothing of ours puts the default there afterwards. mend makes ours the handler again: where it finds the default,
 * where the signal is ignored (`ignored_too`), and where it finds a handler, which is called after ours from then
 * on; but one for INT, which ours would not outlive, is left. retake does so for a handler that is not to be called.
 * Both do nothing for signals that are not ours, or in another process than the one that installed. Thread-safe. */
void oribi_signals_mend(int number, bool ignored_too);
void oribi_signals_mend_all(bool ignored_too);
void oribi_signals_retake(int number);

/* In a handler: puts back the handler that was there before ours, or that the program has installed instead since, and
 * raises the signal again. */
void oribi_signals_yield(int number);

/* "TERM", "SIGTERM" or "15" to a number, 0 when there is none; and the short name of a number, "" when it has none. */
int oribi_signal_number(const char *name);
const char *oribi_signal_name(int number);

/* Everything as it was before us, for a process that goes on in its language. */
void oribi_signals_uninstall(void);

/* For a process that only has to end, as its language does: the handlers stay until it has gone, so that a late signal
 * does not change its exit code. INT ends it at once with `code`, the others do nothing. Followed by uninstall where
 * the process goes on after all. */
void oribi_signals_end(int code);

/* Holds back the signals above but CHLD and PIPE on this thread, across a fork, until the child has handlers of its
 * own. Not nested. */
void oribi_signals_hold(void);
void oribi_signals_release(void);

#endif

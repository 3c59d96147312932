/* Reasons for which the supervisor ends a worker, as its log says them (policy_state.c). */
#ifndef ORIBI_POLICY_CAUSES_H
#define ORIBI_POLICY_CAUSES_H

/* Compared by address. */
extern const char oribi__cause_asked[];
extern const char oribi__cause_boot_timeout[];
extern const char oribi__cause_shutdown_timeout[];
extern const char oribi__cause_call_deadline[];
extern const char oribi__cause_hang[];
extern const char oribi__cause_mold_ended[];
extern const char oribi__cause_age_max[];
extern const char oribi__cause_memory_max[];
extern const char oribi__cause_refork[];

#endif

/* The state of a thread, as the kernel tells it: whether it runs or waits, and in which system call. The source for
 * Linux is os_thread_linux.c. */
#ifndef ORIBI_BASE_OS_OS_THREAD_H
#define ORIBI_BASE_OS_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The effect of a signal handler with SA_RESTART on the system call that a thread waits in (signal(7)). */
enum oribi_os_interruption {
    ORIBI_OS_UNHARMED, /* the call goes on, or there is none */
    ORIBI_OS_REPEATED, /* it fails with EINTR, for which every program of the field is prepared: poll(2) and the like */
    ORIBI_OS_CUT_SHORT, /* it ends, and who waits there may not look why: sleeps, sockets with a time-out */
};

struct oribi_os_thread_state {
    char state;        /* 'R' runs, 'S' and 'D' wait, 'T' and 't' are stopped, 'Z' has ended; 0: not known */
    uint64_t switches; /* how often the thread has given or lost its processor */
    char call[32];     /* the system call that it waits in; "" where there is none, "system call N" */
    long args[2];      /* its first arguments */
    enum oribi_os_interruption interruption;
};

/* The kernel's number of a thread that is there. 0: not known. */
pid_t oribi_os_thread_id(pthread_t thread);

/* Looks at a thread of a process. False: there is none, or the kernel does not tell (no /proc). */
bool oribi_os_thread_look(pid_t pid, pid_t tid, struct oribi_os_thread_state *out);

/* True if the thread waited all the time between two looks: it has read and changed nothing of its memory. */
bool oribi_os_thread_waited(const struct oribi_os_thread_state *before, const struct oribi_os_thread_state *after);

/* Sends a signal to one thread of a process. 0 or ORIBI_ESYS (it is gone). */
int oribi_os_thread_signal(pid_t pid, pid_t tid, int signal_number);

/* The calling thread's kernel number. */
pid_t oribi_os_thread_self(void);

/* Names the calling thread for ps(1), top(1) and debuggers: 15 bytes at most, the process keeps its title
 * (pthread_setname_np(3)). */
void oribi_os_thread_name(const char *name);

/* Changes the working directory of the calling thread alone, which keeps it; of the whole process where threads have
 * none of their own. 0 or a code of os.h. */
int oribi_os_thread_enter_dir(const char *path);

#endif

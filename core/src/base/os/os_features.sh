#!/bin/sh
# Writes what macOS and the BSDs have, each in its own way: os_features.sh HEADER COMPILER [FLAG]...
# A feature is a few lines that compile or do not. Nothing is linked or run, so that it works for other machines too.
# The Makefile has every source of such a build include the header first. Compiler and flags are noted in it: with the
# same ones it is not made again.
set -eu
header=$1
shift
noted="/* Made by os_features.sh of $(cksum <"$0" | cut -d' ' -f1) with $* */"
[ "$(head -n 1 "$header" 2>/dev/null)" != "$noted" ] || exit 0
mkdir -p "$(dirname "$header")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# has NAME HEADERS BODY COMPILER...: defines ORIBI_HAS_NAME if a function of this body compiles.
has() {
    name=$1
    {
        for one in $2; do echo "#include <$one>"; done
        echo "int probe(void); int probe(void) { $3; return 0; }"
    } >"$work/probe.c"
    shift 3
    if "$@" -Werror=implicit-function-declaration -Werror=incompatible-pointer-types -Werror=int-conversion \
        -c -o "$work/probe.o" "$work/probe.c" >"$work/log" 2>&1; then
        echo "#define ORIBI_HAS_$name 1"
    fi
}

sockets="sys/types.h sys/socket.h sys/uio.h"
{
    echo "$noted"
    has ACCEPT4 "$sockets" 'return accept4(0, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK)' "$@"
    has SOCK_CLOEXEC "$sockets" 'return SOCK_CLOEXEC | SOCK_NONBLOCK' "$@"
    has CMSG_CLOEXEC "$sockets" 'return MSG_CMSG_CLOEXEC' "$@"
    has PIPE2 'unistd.h fcntl.h' 'int fds[2]; return pipe2(fds, O_CLOEXEC | O_NONBLOCK)' "$@"
    has MSG_NOSIGNAL "$sockets" 'return MSG_NOSIGNAL' "$@"
    has NOSIGPIPE "$sockets" 'return SO_NOSIGPIPE' "$@"
    has SENDFILE_FREEBSD "$sockets" 'off_t n = 0; return sendfile(0, 0, 0, (size_t)1, (struct sf_hdtr *)0, &n, 0)' "$@"
    has SENDFILE_MACOS "$sockets" 'off_t n = 0; return sendfile(0, 0, 0, &n, (struct sf_hdtr *)0, 0)' "$@"
    has SO_NWRITE "$sockets" 'return SO_NWRITE' "$@"
    has FIONWRITE 'sys/ioctl.h sys/filio.h' 'int n = 0; return ioctl(0, FIONWRITE, &n)' "$@"
    has GETPEEREID 'sys/types.h unistd.h' 'uid_t u; gid_t g; return getpeereid(0, &u, &g)' "$@"
    has PEERPID 'sys/socket.h sys/un.h' 'return SOL_LOCAL + LOCAL_PEERPID' "$@"
    has XUCRED_PID 'sys/param.h sys/socket.h sys/ucred.h sys/un.h' 'struct xucred x; x.cr_pid = LOCAL_PEERCRED; return x.cr_pid' "$@"
    has PPOLL 'signal.h poll.h' 'return ppoll(0, 0, 0, 0)' "$@"
    has MAIN_NP 'pthread.h' 'return pthread_main_np()' "$@"
    has MAIN_NP_HEADER 'pthread.h pthread_np.h' 'return pthread_main_np()' "$@"
    has NAME_SELF 'pthread.h' 'return pthread_setname_np("x")' "$@"
    has NAME_THREAD 'pthread.h' 'return pthread_setname_np(pthread_self(), "x")' "$@"
    has NAME_FORMAT 'pthread.h' 'return pthread_setname_np(pthread_self(), "%s", (void *)"x")' "$@"
    has NAME_NP_HEADER 'pthread.h pthread_np.h' 'pthread_set_name_np(pthread_self(), "x")' "$@"
    has ARC4RANDOM 'stdlib.h' 'arc4random_buf(0, 0)' "$@"
    has SYS_RANDOM 'sys/types.h sys/random.h' 'return getentropy(0, 0)' "$@"
    has MKOSTEMP 'stdlib.h unistd.h fcntl.h' 'return mkostemp((char *)0, O_CLOEXEC)' "$@"
    has SPAWN_SETSID 'spawn.h' 'return POSIX_SPAWN_SETSID' "$@"
    has SYSCTLBYNAME 'sys/types.h sys/sysctl.h' 'int v; size_t n = sizeof(v); return sysctlbyname("x", &v, &n, 0, 0)' "$@"
    has PROCARGS2 'sys/types.h sys/sysctl.h' 'int mib[] = {CTL_KERN, KERN_PROCARGS2, 1}; size_t n = 0; return sysctl(mib, 3, 0, &n, 0, 0)' "$@"
    has PROC_ARGS 'sys/types.h sys/sysctl.h' 'int mib[] = {CTL_KERN, KERN_PROC, KERN_PROC_ARGS, KERN_PROC_ENV}; size_t n = 0; return sysctl(mib, 4, 0, &n, 0, 0)' "$@"
    has SAFE_FORK 'sys/types.h' '
#ifdef __APPLE__
#error "not once Objective-C was initialised"
#endif
' "$@"
    has PROC_PIDINFO 'libproc.h mach/mach_time.h' 'struct proc_taskinfo t; return proc_pidinfo(1, PROC_PIDTASKINFO, 0, &t, sizeof(t))' "$@"
    has KINFO_RSSIZE 'sys/types.h sys/param.h sys/sysctl.h sys/user.h' 'struct kinfo_proc p; p.ki_rssize = 1; return (int)p.ki_runtime' "$@"
    has EXPLICIT_BZERO 'string.h strings.h' 'explicit_bzero(0, 0)' "$@"
    has CONDATTR_SETCLOCK 'pthread.h time.h' 'pthread_condattr_t a; return pthread_condattr_setclock(&a, CLOCK_MONOTONIC)' "$@"
    has ST_MTIM 'sys/types.h sys/stat.h' 'struct stat s; s.st_mtim.tv_sec = 0; return (int)s.st_ctim.tv_sec' "$@"
    has UNNAMED_SEMAPHORES 'semaphore.h sys/param.h' '
#if defined(__APPLE__) || defined(ORIBI_AS_MACOS)
#error "sem_init(2) is there and fails"
#endif
' "$@"
    has SEQPACKET 'sys/socket.h' '
#if defined(__APPLE__) || defined(ORIBI_AS_MACOS)
#error "the constant is there, and no unix socket of this type"
#endif
return SOCK_SEQPACKET' "$@"
    has DUP3 'unistd.h fcntl.h' 'return dup3(0, 1, O_CLOEXEC)' "$@"
    echo '#include "base/os/os_missing.h"'
} >"$work/header"
mv "$work/header" "$header"

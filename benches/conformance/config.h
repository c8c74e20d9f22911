/* What glibc's build defines for its tests and their support library, for a build outside of
   glibc. Every file includes this one first. Public headers are the machine's own. */
#ifndef RADDLE_CONFORMANCE_CONFIG_H
#define RADDLE_CONFORMANCE_CONFIG_H

#include <limits.h>
#include <sys/cdefs.h>
#include <sys/syscall.h>

/* Symbol visibility inside of libc. */
#define libc_hidden_proto(...)
#define libc_hidden_def(...)
#define attribute_hidden
#define attribute_relro
#define IS_IN(module) 0
#define always_inline inline

/* internal-signals.h: a system call without errno. */
#define INTERNAL_SYSCALL_CALL(name, ...) syscall (__NR_##name, __VA_ARGS__)

/* support_test_main.c: how much slower than usual the machine is. */
#define TIMEOUTFACTOR 1

/* support_paths.c: where things are. */
#define SRCDIR_PATH "."
#define OBJDIR_PATH "."
#define OBJDIR_ELF_LDSO_PATH "/lib64/ld-linux-x86-64.so.2"
#define INSTDIR_PATH "/usr"
#define LIBDIR_PATH "/usr/lib"
#define BINDIR_PATH "/usr/bin"
#define SBINDIR_PATH "/usr/sbin"
#define SLIBDIR_PATH "/lib"
#define ROOTSBINDIR_PATH "/sbin"
#define COMPLOCALEDIR_PATH "/usr/lib/locale"

#endif

// SPDX-License-Identifier: Apache-2.0
//
// Preloaded: a network file system without locks on which names appear late.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static void wait_up_to(unsigned microseconds) {
  static __thread unsigned seed = 0;
  if (seed == 0) seed = (unsigned)getpid();
  usleep((unsigned)rand_r(&seed) % microseconds);
}

int flock(int file, int operation) {
  (void)file, (void)operation;
  errno = ENOLCK;
  return -1;
}

int fcntl(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* argument = va_arg(list, void*);
  va_end(list);
  if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) {
    errno = ENOLCK;
    return -1;
  }
  int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
  return real(file, command, argument);
}
int fcntl64(int file, int command, ...) __attribute__((alias("fcntl")));

int rename(const char* from, const char* to) {
  int (*real)(const char*, const char*) = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  wait_up_to(200000);
  const int result = real(from, to);
  wait_up_to(200000);
  return result;
}

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = va_arg(list, mode_t);
  va_end(list);
  int (*real)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  wait_up_to(2000);
  return real(path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));

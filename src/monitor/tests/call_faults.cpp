// SPDX-License-Identifier: Apache-2.0
//
// Functions of the C library, defined here so that the whole program finds them first.
#include "call_faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>

namespace {

using flopmeter::Fault;

std::atomic<long> left{0};  // calls until the one that fails; 0: none will
enum class Failing { nothing, calls, allocations };
std::atomic<Failing> failing{Failing::nothing};
std::atomic<bool> failed{false};
std::atomic<Fault> fault{Fault::once};
std::atomic<int> code{0};
thread_local bool counting_locks = false;
thread_local std::size_t locks = 0;
std::atomic<pthread_t> own_thread{};
std::atomic<bool> counting_statics{false};
std::atomic<std::size_t> late_statics{0};

/// Whether this call or allocation is one that fails.
bool hit(Failing kind) {
  if (failing != kind) return false;
  if (left.load() > 0 && --left > 0) return false;
  if (failed.exchange(true) && fault != Fault::from_then) return false;
  return true;
}

bool fails() {
  if (!hit(Failing::calls) || fault == Fault::halved) return false;
  errno = code;
  return true;
}

void* allocate(std::size_t size) noexcept {
  return hit(Failing::allocations) ? nullptr : std::malloc(size);
}

void start_failing(Failing what, long k, Fault how) {
  fault = how;
  left = k;
  failed = false;
  failing = what;
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

void flopmeter::fail_call(long k, Fault how, int with) {
  code = with;
  start_failing(Failing::calls, k, how);
}

void flopmeter::fail_allocation(long k, Fault how) {
  start_failing(Failing::allocations, k, how);
}

bool flopmeter::stop_failing() {
  failing = Failing::nothing;
  return failed;
}

std::size_t flopmeter::count_locks(bool start) {
  const std::size_t counted = locks;
  counting_locks = start;
  if (start) locks = 0;
  return counted;
}

std::size_t flopmeter::watch_late_statics(bool start) {
  own_thread = pthread_self();
  if (start) late_statics = 0;
  counting_statics = start;
  return late_statics;
}

void* operator new(std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc{};
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  static auto* const next = real<int(const char*, int, ...)>("open");
  return fails() ? -1 : next(path, flags, mode);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const next = real<ssize_t(int, const void*, size_t)>("write");
  if (hit(Failing::calls)) {
    if (fault == Fault::halved) return next(fd, bytes, (size + 1) / 2);
    errno = code;
    return -1;
  }
  return next(fd, bytes, size);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return fails() ? -1 : next(fd, bytes, size, at);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  static auto* const next = real<ssize_t(int, const iovec*, int)>("writev");
  return fails() ? -1 : next(fd, parts, count);
}
ssize_t pread(int fd, void* bytes, size_t size, off_t at) {
  static auto* const next = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return fails() ? -1 : next(fd, bytes, size, at);
}
int fsync(int fd) {
  static auto* const next = real<int(int)>("fsync");
  return fails() ? -1 : next(fd);
}
int fdatasync(int fd) {
  static auto* const next = real<int(int)>("fdatasync");
  return fails() ? -1 : next(fd);
}
int ftruncate(int fd, off_t size) noexcept {
  static auto* const next = real<int(int, off_t)>("ftruncate");
  return fails() ? -1 : next(fd, size);
}
int rename(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("rename");
  return fails() ? -1 : next(from, to);
}
int link(const char* from, const char* to) noexcept {
  static auto* const next = real<int(const char*, const char*)>("link");
  return fails() ? -1 : next(from, to);
}
int unlink(const char* path) noexcept {
  static auto* const next = real<int(const char*)>("unlink");
  return fails() ? -1 : next(path);
}
int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const next = real<int(const char*, mode_t)>("mkdir");
  return fails() ? -1 : next(path, mode);
}
int flock(int fd, int operation) noexcept {
  static auto* const next = real<int(int, int)>("flock");
  return fails() ? -1 : next(fd, operation);
}
int fstat(int fd, struct stat* info) noexcept {
  static auto* const next = real<int(int, struct stat*)>("fstat");
  return fails() ? -1 : next(fd, info);
}
DIR* opendir(const char* path) {
  static auto* const next = real<DIR*(const char*)>("opendir");
  return fails() ? nullptr : next(path);
}
int pthread_create(pthread_t* thread,
                   const pthread_attr_t* attributes,
                   void* (*start)(void*),
                   void* argument) noexcept {
  static auto* const next =
      real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return fails() ? EAGAIN : next(thread, attributes, start, argument);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* const next = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  if (counting_locks) ++locks;
  return next(mutex);
}
int __cxa_atexit(void (*destructor)(void*), void* object, void* library) noexcept {  // NOLINT
  static auto* const next = real<int(void (*)(void*), void*, void*)>("__cxa_atexit");
  if (counting_statics && pthread_self() != own_thread) ++late_statics;
  return next(destructor, object, library);
}
}

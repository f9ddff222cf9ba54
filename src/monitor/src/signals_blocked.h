// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace flopmeter {

/// Blocks all signals in the calling thread while it lives, then discards those that a write sent
/// to the thread itself, so that a full disk or a closed pipe does not end the program.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    sigpending(&pending_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  SignalsBlocked(SignalsBlocked&&) = delete;
  SignalsBlocked& operator=(SignalsBlocked&&) = delete;
  ~SignalsBlocked() {
    sigset_t ours;
    sigemptyset(&ours);
    for (const int signal : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&pending_, signal) == 0) sigaddset(&ours, signal);
    }
    const timespec no_wait{};
    while (sigtimedwait(&ours, nullptr, &no_wait) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
  sigset_t pending_{};
};

}  // namespace flopmeter

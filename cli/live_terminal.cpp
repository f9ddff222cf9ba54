// SPDX-License-Identifier: Apache-2.0
#include "live_terminal.h"

#include <flopmeter/core/text.h>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace flopmeter {
namespace {

volatile std::sig_atomic_t quit_asked = 0;
volatile std::sig_atomic_t size_changed = 0;
volatile std::sig_atomic_t stop_asked = 0;

constexpr std::array<int, 5> handled = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};

void note(int signal) {
  if (signal == SIGWINCH) {
    size_changed = 1;
  } else if (signal == SIGTSTP) {
    stop_asked = 1;
  } else {
    quit_asked = 1;
  }
}

bool put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

sigset_t handled_set() {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : handled) sigaddset(&set, signal);
  return set;
}

}  // namespace

LiveTerminal::LiveTerminal() {
  // Signals are unblocked only in wait(), so that none is missed and no write is interrupted.
  const sigset_t set = handled_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  struct sigaction action {};
  action.sa_handler = note;
  for (const int signal : handled) sigaction(signal, &action, nullptr);
  enter();
}

LiveTerminal::~LiveTerminal() {
  leave();
  for (const int signal : handled) std::signal(signal, SIG_DFL);
  const sigset_t set = handled_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void LiveTerminal::enter() {
  has_keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  put("\x1b[?1049h\x1b[?25l");  // alternate screen, without a cursor
  shown_.clear();
}

void LiveTerminal::leave() {
  put("\x1b[?25h\x1b[?1049l");
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool LiveTerminal::show(const std::vector<std::string>& lines) {
  std::string text = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    text += lines[i] + "\x1b[K";
  }
  text += "\x1b[J";
  if (text == shown_) return true;
  shown_ = std::move(text);
  return put(shown_);
}

LiveTerminal::Event LiveTerminal::wait(double seconds) {
  sigset_t during{};
  pthread_sigmask(SIG_BLOCK, nullptr, &during);
  for (const int signal : handled) sigdelset(&during, signal);
  pollfd keys{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  const auto whole = static_cast<std::time_t>(seconds);
  const timespec limit{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  const int ready = ppoll(&keys, 1, &limit, &during);
  if (quit_asked != 0) return Event::quit;
  if (stop_asked != 0) {
    stop_asked = 0;
    leave();
    raise(SIGSTOP);
    enter();
    return Event::resized;
  }
  if (size_changed != 0) {
    size_changed = 0;
    shown_.clear();
    return Event::resized;
  }
  if (ready > 0) {
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) <= 0) has_keys_ = (keys.revents & POLLHUP) == 0 && has_keys_;
    if (key == 'q') return Event::quit;
    return Event::resized;
  }
  return Event::time;
}

}  // namespace flopmeter

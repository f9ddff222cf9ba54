// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <flopmeter/core/static_text.h>

#include <exception>
#include <new>

namespace flopmeter {

Result<Monitor> Monitor::start(const Options& options, Connections connections) {
  try {
    auto session = std::make_shared<Session>(options, std::move(connections));
    if (options.enabled) {
      if (const auto started = session->start(); !started) return started.error();
    }
    return Monitor{std::move(session)};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::io_error, "no memory"};  // a longer text would need some
  } catch (const std::exception& error) {
    return Error{ErrorCode::io_error, std::string{"the monitor cannot start: "} + error.what()};
  }
}

Monitor::Monitor(std::shared_ptr<Session> session) : session_(std::move(session)) {}
Monitor::Monitor(Monitor&&) noexcept = default;

Monitor& Monitor::operator=(Monitor&& other) noexcept {
  if (this != &other) {
    finish();
    session_ = std::move(other.session_);
  }
  return *this;
}

Monitor::~Monitor() {
  finish();
  // A forked child must not destroy objects that its missing thread may have locked.
  if (session_ && session_->is_child())
    static_cast<void>(new (std::nothrow) std::shared_ptr<Session>(std::move(session_)));
}

StepReply Monitor::on(const StepEvent& event) noexcept {
  return session_->alive() ? session_->tracker().on(event) : StepReply{};
}
bool Monitor::expects_backward(const StepEvent& event) const noexcept {
  return session_->alive() && session_->tracker().expects_backward(event);
}
void Monitor::begin_step(const StepInput& input) noexcept {
  if (session_->alive()) session_->tracker().begin_step(input);
}
void Monitor::mark_step(const StepInput& input) noexcept {
  if (session_->alive()) session_->tracker().mark_step(input);
}
void Monitor::keep_step() noexcept {
  if (session_->alive()) session_->tracker().keep_step();
}
void Monitor::micro_batch(const StepInput& input) noexcept {
  if (session_->alive()) session_->tracker().micro_batch(input);
}
void Monitor::end_step(const StepOutcome& outcome) noexcept {
  if (session_->alive()) session_->tracker().end_step(outcome);
}
void Monitor::abandon_step() noexcept {
  if (session_->alive()) session_->tracker().abandon_step();
}
void Monitor::log(const StepOutcome& outcome) noexcept {
  if (session_->alive()) session_->tracker().log(outcome);
}
void Monitor::begin_phase(Phase phase) noexcept {
  if (session_->alive()) session_->tracker().begin_phase(phase);
}
void Monitor::end_phase(Phase phase) noexcept {
  if (session_->alive()) session_->tracker().end_phase(phase);
}
std::string_view Monitor::set_stage(std::string_view stage) {
  if (!session_->alive()) return {};
  return session_->tracker().set_stage(stage.empty() ? stage : static_text(stage));
}
void Monitor::set_frozen_mode(bool frozen) noexcept {
  session_->tracker().set_frozen_mode(frozen);
}
void Monitor::set_loader_seen() noexcept {
  session_->tracker().set_loader_seen();
}
void Monitor::expect_no_optimizer() noexcept {
  session_->tracker().expect_no_optimizer();
}
void Monitor::set_training_phase(TrainingPhase phase) noexcept {
  session_->recorder().plan().set_training_phase(phase);
}
void Monitor::model_changed() noexcept {
  session_->recorder().plan().invalidate();
}
bool Monitor::measuring() const noexcept {
  return session_->alive() && session_->recorder().measuring();
}

std::shared_ptr<Subscription> Monitor::subscribe(std::size_t capacity) {
  return session_->subscribe(capacity);
}
void Monitor::flush() {
  if (session_->alive()) session_->flush();
}
void Monitor::add_finding(Finding finding) {
  session_->add_finding(std::move(finding));
}

void Monitor::finish() noexcept {
  if (!session_) return;
  if (session_->alive()) session_->tracker().finish();
  session_->finish();
}

bool Monitor::enabled() const noexcept {
  return session_->alive();
}
MonitorStatus Monitor::status() const {
  return session_->status();
}

}  // namespace flopmeter

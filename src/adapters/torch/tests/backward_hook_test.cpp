// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/torch/op_counter.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace flopmeter {
namespace {

std::uintptr_t address_of(const at::Tensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl());
}

class BackwardIsHooked : public testing::Test {
 protected:
  std::vector<std::string> events_;
  std::unique_ptr<BackwardHook> watch_ = std::make_unique<BackwardHook>(
      [this] { events_.emplace_back("begins"); }, [this] { events_.emplace_back("ends"); });
  at::Tensor weight_ = at::ones({3}).requires_grad_();
};

TEST_F(BackwardIsHooked, from_its_beginning_to_its_end) {
  const at::Tensor loss = (weight_ * 2).sum();
  EXPECT_EQ(watch_->watch(address_of(loss)), true);
  EXPECT_FALSE(watch_->take_begun());
  weight_.register_hook([this](const at::Tensor&) { events_.emplace_back("gradient"); });
  loss.backward();
  EXPECT_THAT(events_, testing::ElementsAre("begins", "gradient", "ends"));
  EXPECT_TRUE(watch_->take_begun());
  EXPECT_FALSE(watch_->take_begun());
  EXPECT_TRUE(at::equal(weight_.grad(), at::full({3}, 2.0)));
}

TEST_F(BackwardIsHooked, once_for_all_outputs_that_it_passes) {
  const at::Tensor hidden = weight_ * 2;
  const at::Tensor loss = hidden.sum();
  watch_->watch(address_of(hidden));
  watch_->watch(address_of(loss));
  loss.backward();
  EXPECT_THAT(events_, testing::ElementsAre("begins", "ends"));
}

TEST_F(BackwardIsHooked, again_after_one_that_failed) {
  const at::Tensor hidden = weight_ * 2;
  watch_->watch(address_of(hidden));
  const unsigned hook = weight_.register_hook(
      [](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no memory"); });
  EXPECT_THROW(hidden.sum().backward(), std::runtime_error);
  weight_.remove_hook(hook);
  events_.clear();
  const at::Tensor loss = (weight_ * 2).sum();
  watch_->watch(address_of(loss));
  loss.backward();
  EXPECT_THAT(events_, testing::ElementsAre("begins", "ends"));
}

TEST_F(BackwardIsHooked, not_where_no_gradient_comes) {
  EXPECT_EQ(watch_->watch(address_of(at::ones({3}))), std::nullopt);
  EXPECT_EQ(watch_->watch(address_of(weight_)), std::nullopt);
}

TEST_F(BackwardIsHooked, but_not_events_from_another_thread) {
  const at::Tensor loss = (weight_ * 2).sum();
  watch_->watch(address_of(loss));
  std::thread([&] { loss.backward(); }).join();
  EXPECT_THAT(events_, testing::IsEmpty());
  EXPECT_TRUE(watch_->take_begun());
}

TEST_F(BackwardIsHooked, no_longer_than_the_watch_lasts) {
  const at::Tensor loss = (weight_ * 2).sum();
  watch_->watch(address_of(loss));
  watch_.reset();
  loss.backward();
  EXPECT_THAT(events_, testing::IsEmpty());
}

}  // namespace
}  // namespace flopmeter

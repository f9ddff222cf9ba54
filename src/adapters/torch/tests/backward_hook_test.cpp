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

class BackwardHookTest : public testing::Test {
 protected:
  std::vector<std::string> events_;
  std::unique_ptr<BackwardHook> watch_ = std::make_unique<BackwardHook>(
      [this] { events_.emplace_back("begins"); }, [this] { events_.emplace_back("ends"); });
  at::Tensor weight_ = at::ones({3}).requires_grad_();
};

TEST_F(BackwardHookTest, reports_the_whole_pass) {
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

TEST_F(BackwardHookTest, reports_one_pass_for_several_outputs) {
  const at::Tensor hidden = weight_ * 2;
  const at::Tensor loss = hidden.sum();
  watch_->watch(address_of(hidden));
  watch_->watch(address_of(loss));
  loss.backward();
  EXPECT_THAT(events_, testing::ElementsAre("begins", "ends"));
}

TEST_F(BackwardHookTest, reports_the_pass_after_a_failed_one) {
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

TEST_F(BackwardHookTest, ignores_outputs_without_a_gradient) {
  EXPECT_EQ(watch_->watch(address_of(at::ones({3}))), std::nullopt);
  EXPECT_EQ(watch_->watch(address_of(weight_)), std::nullopt);
}

TEST_F(BackwardHookTest, ignores_passes_of_other_threads) {
  const at::Tensor loss = (weight_ * 2).sum();
  watch_->watch(address_of(loss));
  std::thread([&] { loss.backward(); }).join();
  EXPECT_THAT(events_, testing::IsEmpty());
  EXPECT_TRUE(watch_->take_begun());
}

TEST_F(BackwardHookTest, reports_nothing_after_it_is_destroyed) {
  const at::Tensor loss = (weight_ * 2).sum();
  watch_->watch(address_of(loss));
  watch_.reset();
  loss.backward();
  EXPECT_THAT(events_, testing::IsEmpty());
}

}  // namespace
}  // namespace flopmeter

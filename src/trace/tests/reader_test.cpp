// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

#include <gmock/gmock.h>

namespace flopmeter {
namespace {

using testing::HasSubstr;

TraceText two_kernels() {
  return TraceText{}
      .op("aten::add", 1, 10)
      .kernel("add_kernel", 1, 2, 20, 5)
      .kernel("mul_kernel", 2, 6, 30, 5);
}

Trace parsed(std::string_view text, int threads = 1) {
  Result<Trace> trace = parse_trace(text, {.threads = threads, .progress = {}});
  EXPECT_TRUE(trace.has_value()) << (trace ? "" : trace.error().message);
  return trace ? std::move(*trace) : Trace{};
}

std::string refusal(std::string_view text) {
  const Result<Trace> trace = parse_trace(text);
  EXPECT_FALSE(trace.has_value());
  return trace ? "" : trace.error().message;
}

TEST(TraceReader, reads_object_and_array_form) {
  const TraceText text = two_kernels();
  for (const std::string& form :
       {text.object(), text.array(), "\xEF\xBB\xBF" + text.object(), "[" + text.events()}) {
    const Trace trace = parsed(form);
    EXPECT_EQ(trace.events, 5);
    EXPECT_EQ(trace.skipped_events, 0);
    EXPECT_EQ(trace.device_events.size(), 2U);
    EXPECT_EQ(trace.host_events.size(), 3U);
    EXPECT_FALSE(trace.truncated);
  }
}

TEST(TraceReader, a_damaged_event_is_skipped_alone) {
  const std::string good = two_kernels().events();
  for (const std::string damaged : {
           R"({"ph": "X", "cat": "cpu_op", "name": "a "quoted" name", "ts": 1, "dur": 1})",
           R"({"ph": "X", "cat": "cpu_op" "name": "no comma", "ts": 1, "dur": 1})",
           R"({"ph": "X", "cat": "cpu_op", "name": "cut off", "ts": )",
       }) {
    const Trace trace = parsed(R"({"traceEvents": [)" + damaged + ",\n" + good + "]}");
    EXPECT_EQ(trace.skipped_events, 1) << damaged;
    EXPECT_EQ(trace.device_events.size(), 2U) << damaged;
    EXPECT_EQ(trace.host_events.size(), 3U) << damaged;
  }
}

TEST(TraceReader, events_with_impossible_times_are_skipped) {
  const Trace trace = parsed(
      R"([{"ph": "X", "cat": "kernel", "name": "negative", "ts": 5, "dur": -1},
          {"ph": "X", "cat": "kernel", "name": "no start", "dur": 1},
          {"ph": "X", "cat": "kernel", "name": "beyond any clock", "ts": 9e18, "dur": 1},)" +
      two_kernels().events() + "]");
  EXPECT_EQ(trace.skipped_events, 3);
  EXPECT_EQ(trace.device_events.size(), 2U);
}

TEST(TraceReader, a_file_that_ends_early_gives_what_it_has) {
  const std::string text = two_kernels().object();
  const Trace trace = parsed(std::string_view{text}.substr(0, text.rfind("\"dur\"")));
  EXPECT_TRUE(trace.truncated);
  EXPECT_EQ(trace.skipped_events, 1);
  EXPECT_EQ(trace.device_events.size(), 1U);
}

TEST(TraceReader, invalid_json_does_not_matter_in_values_that_are_not_needed) {
  const Trace trace = parsed(
      R"({"traceEvents": [{"args": {"occupancy": nan, "x": N/A, "y": -inf, "correlation": 99999999999999999999999},
          "dur": 999, "dur": "2.5", "ts": "10", "name": "k)"
      "\x01\xff"
      R"(", "cat": "Kernel", "pid": 3, "tid": "stream 7", "ph": "X"},]})");
  ASSERT_EQ(trace.device_events.size(), 1U);
  EXPECT_EQ(trace.device_events[0].start, 10000);
  EXPECT_EQ(trace.device_events[0].duration, 2500);
  EXPECT_EQ(trace.device_events[0].device, 3);
  EXPECT_EQ(trace.device_events[0].correlation, no_id);
  EXPECT_FALSE(trace.truncated);
}

TEST(TraceReader, an_event_without_thread_is_read) {
  const Trace trace =
      parsed(R"([{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}])");
  ASSERT_EQ(trace.host_events.size(), 1U);
  EXPECT_EQ(trace.host_events[0].thread, 0U);
}

TEST(TraceReader, events_of_other_accelerators_are_summed_separately) {
  const DeviceReport report = TraceText{}
                                  .device("mtia_ccp_events", "fc-dtype_Float", 0, 40)
                                  .device("mtia_ccp_events", "dma_request", 30, 20)
                                  .device("mtia_ccp_events", "event_wait", 50, 100)
                                  .report();
  EXPECT_EQ(report.kernels, 0);
  ASSERT_EQ(report.other_work.size(), 1U);
  const OtherWork& work = report.other_work[0];
  EXPECT_EQ(work.category, "mtia_ccp_events");
  EXPECT_EQ(work.events, 3);
  EXPECT_EQ(work.busy, 50'000);
  EXPECT_EQ(work.span, 150'000);
  EXPECT_EQ(work.longest[0].op, "event_wait");
}

TEST(TraceReader, only_device_categories_are_device_work) {
  TraceText text;
  for (const char* category : {"gpu_user_annotation", "cuda_sync", "overhead", "python_function"})
    text.device(category, "no work", 1, 100);
  text.op("triton_poi_fused_0", 1, 100, R"("stream": 7, "kernel_backend": "triton")");
  for (const char* category :
       {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "concurrent_kernel"}) {
    text.device(category, "work", 1, 1);
  }
  const Trace trace = parsed(text.object());
  EXPECT_EQ(trace.device_events.size(), 7U);
  EXPECT_EQ(trace.host_events.size(), 1U);
}

TEST(TraceReader, kernels_that_exchange_data_are_communication) {
  TraceText text;
  for (const char* name : {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                           "ncclKernel_AllGather_RING_LL_Sum_int8_t",
                           "void deep_ep::internode_ll::dispatch<true>(int)",
                           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>",
                           "multimem_all_reduce_kernel"}) {
    text.device("kernel", name, 1, 1);
  }
  text.device("kernel", "anything", 1, 1, R"("Collective name": "allreduce")");
  for (const DeviceEvent& event : parsed(text.object()).device_events)
    EXPECT_EQ(event.kind, DeviceClass::communication);
  const Trace rocm = parsed(TraceText{}
                                .device("kernel", "__amd_rocclr_copyBuffer", 1, 1)
                                .device("kernel", "__amd_rocclr_fillBufferAligned", 1, 1)
                                .object());
  EXPECT_EQ(rocm.device_events[0].kind, DeviceClass::memcpy);
  EXPECT_EQ(rocm.device_events[1].kind, DeviceClass::memset);
}

TEST(TraceReader, threads_do_not_change_the_result) {
  TraceText text;
  for (int i = 0; i < 60000; ++i) {
    // An argument that looks like the start of an event, to mislead a reader that starts in it.
    text.kernel("kernel " + std::to_string(i % 500),
                i,
                i,
                i + 1,
                0.5,
                R"(, "list": [ {"name": "x", "ph": "X"}, {"ph": "X"} ])");
  }
  const std::string json = text.object();
  ASSERT_GT(json.size(), std::size_t{16} << 20);  // several chunks
  const Trace one = parsed(json, 1);
  const Trace four = parsed(json, 4);
  EXPECT_EQ(one.events, 120000);
  EXPECT_EQ(four.events, one.events);
  EXPECT_EQ(four.skipped_events, 0);
  ASSERT_EQ(four.device_events.size(), one.device_events.size());
  for (std::size_t i = 0; i < one.device_events.size(); ++i) {
    EXPECT_EQ(four.device_events[i].start, one.device_events[i].start);
    EXPECT_EQ(four.text(four.device_events[i].name), one.text(one.device_events[i].name));
  }
}

TEST(TraceReader, other_files_are_named) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal(" \n "), HasSubstr("empty"));
  EXPECT_THAT(refusal("PK\x03\x04..."), HasSubstr("unzip"));
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("git lfs pull"));
  EXPECT_THAT(refusal("<!DOCTYPE html>"), HasSubstr("web page"));
  EXPECT_THAT(refusal("{}"), HasSubstr("traceEvents"));
  EXPECT_THAT(refusal(R"({"traceEvents": []})"), HasSubstr("stopped before"));
  EXPECT_THAT(refusal(R"([{"ph": "X", "name": "request", "ts": 1, "dur": 1}])"),
              HasSubstr("not of the PyTorch profiler"));
  EXPECT_THAT(refusal(R"({"schema": "1.1.1-chakra.0.0.4", "nodes": []})"), HasSubstr("Chakra"));
  EXPECT_THAT(refusal(R"({"traceEvents": )" + std::string(100000, '[')), HasSubstr("damaged"));
}

TEST(TraceReader, names_are_unescaped) {
  const Trace trace = parsed(
      R"([{"ph": "X", "cat": "kernel", "name": "a\"b\\c\u00e9\ud83d\ude00\q", "ts": 1, "dur": 1}])");
  EXPECT_EQ(trace.text(trace.device_events.at(0).name), "a\"b\\c\u00e9\U0001F600\\q");
}

}  // namespace
}  // namespace flopmeter

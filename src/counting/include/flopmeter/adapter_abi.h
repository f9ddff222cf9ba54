// SPDX-License-Identifier: Apache-2.0
//
// The C interface between libflopmeter and an adapter that is compiled on the user's machine for
// the framework found there.  Only plain C types cross it: no C++ library type, no virtual
// function, no exception.  An adapter therefore works with either C++ ABI of the framework, and
// with a libflopmeter that carries its own C++ library.
//
// The adapter exports one function, flopmeter_torch_adapter().  It receives the functions of the
// library and returns its own.  No symbol of libflopmeter is needed to link an adapter.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Changes with any type or function below: neither side accepts another version.
#define FLOPMETER_ADAPTER_ABI_VERSION 7

/// Compute dtypes, numbered as flopmeter::Dtype.
enum FlopmeterDtype {
  FLOPMETER_FP64,
  FLOPMETER_FP32,
  FLOPMETER_TF32,
  FLOPMETER_BF16,
  FLOPMETER_FP16,
  FLOPMETER_FP8,
  FLOPMETER_FP4,
  FLOPMETER_INT8,
  FLOPMETER_OTHER_DTYPE
};

/// The pass that a call belongs to.  Work inside a custom autograd function has no certain pass
/// while it runs: it is added as pending, reads as backward, and moves when settle() decides.
enum FlopmeterPass {
  FLOPMETER_FORWARD,
  FLOPMETER_BACKWARD,
  FLOPMETER_RECOMPUTE,
  FLOPMETER_PENDING_FIRST,  ///< before the open node built any graph
  FLOPMETER_PENDING,        ///< after that
  FLOPMETER_CURRENT_PASS    ///< of count_call(): the pass in which this thread is
};

/// The loop's phase in which an optimizer runs, numbered as flopmeter::Phase.
enum { FLOPMETER_PHASE_OPTIMIZER = 3 };

/// The setting that decides in which dtype fp32 work of an operator runs.
enum FlopmeterPrecision {
  FLOPMETER_MATMUL_PRECISION,
  FLOPMETER_CONVOLUTION_PRECISION,
  FLOPMETER_RECURRENT_PRECISION
};

enum FlopmeterArgKind {
  FLOPMETER_NO_ARG,  ///< absent, or of a type that no rule reads
  FLOPMETER_TENSOR,
  FLOPMETER_INTEGER,
  FLOPMETER_LIST,
  FLOPMETER_TENSORS
};

/// One argument of an operator call, laid out as flopmeter::Arg.  Refers to the caller's memory.
typedef struct FlopmeterArg {
  uint8_t kind;        ///< FlopmeterArgKind
  uint8_t dtype;       ///< of a tensor: FlopmeterDtype
  uint8_t is_complex;  ///< of a tensor
  int32_t rank;        ///< extents of a tensor, or items of a list
  union {
    const int64_t* values;             ///< of a tensor or list
    const struct FlopmeterArg* items;  ///< of a list of tensors
    int64_t integer;                   ///< an integer or a flag
  };
} FlopmeterArg;

/// A module id that stands for "modules are not counted".
#define FLOPMETER_MODULES_OFF UINT32_MAX
/// Of count_call(): the module in which this thread is.
#define FLOPMETER_CURRENT_MODULE (UINT32_MAX - 1)

/// A call that succeeded.
typedef struct FlopmeterCall {
  const FlopmeterArg* args;
  size_t arg_count;
  /// By argument: the TensorImpl of a tensor of integers with one extent, else NULL.  NULL if no
  /// argument is one.
  const void* const* tensors;
  FlopmeterArg output;     ///< the first tensor that came back; filled if the operator reads it
  uint32_t module;         ///< 0 outside of all modules, or FLOPMETER_MODULES_OFF
  uint8_t dtype;           ///< that the work ran in
  uint8_t pass;            ///< FlopmeterPass
  uint8_t optimizer_work;  ///< 1: an optimizer computes for itself, not the model
} FlopmeterCall;

/// Whether operators inside an operator are counted themselves.
enum FlopmeterOpenness {
  FLOPMETER_CLOSED,     ///< no: they are part of it
  FLOPMETER_OPEN,       ///< yes; it executes no other FLOPs
  FLOPMETER_MULTIPLIES  ///< yes; without any inside, its call is unsupported
};

/// A counted operator.  Created by the library, lives until the process ends.
typedef struct FlopmeterOp FlopmeterOp;
struct FlopmeterOp {
  /// Adds a call to this thread's counters.  Registering a rule replaces it: load it atomically.
  void (*count)(const FlopmeterOp* op, const FlopmeterCall* call);
  int32_t dtype_argument;  ///< the argument whose dtype is the compute dtype
  int32_t compute_dtype;   ///< the compute dtype if it is fixed, else -1
  uint8_t precision;       ///< FlopmeterPrecision
  uint8_t reads_output;    ///< its rule reads FlopmeterCall::output
  uint8_t openness;        ///< FlopmeterOpenness; load it atomically
};

/// Whether the FLOPs of a profiled call follow from its arguments.
enum FlopmeterCost {
  FLOPMETER_COST_KNOWN,
  FLOPMETER_COST_NO_MATCH,  ///< the arguments do not fit the rule
  FLOPMETER_COST_UNKNOWN    ///< no shape determines the work of this operator
};

/// Kinds of profiled operators, numbered as flopmeter::OpKind.
enum FlopmeterOpKind {
  FLOPMETER_KIND_COMPUTE,
  FLOPMETER_KIND_MEMORY,
  FLOPMETER_KIND_TINY,
  FLOPMETER_KIND_UNKNOWN,
  FLOPMETER_KIND_COMMUNICATION
};

/// Events on an asynchronous device, numbered as flopmeter::DeviceEvent.
enum FlopmeterDeviceEvent {
  FLOPMETER_SYNCHRONIZATION_BEGIN,  ///< the host is about to wait for the device
  FLOPMETER_SYNCHRONIZATION_END,
  FLOPMETER_COPY_BEGIN,  ///< between host and device
  FLOPMETER_COPY_END,
  FLOPMETER_BLOCKING_COPY_END,      ///< of a copy that the host waited for
  FLOPMETER_COLLECTIVE,             ///< one was enqueued on the device
  FLOPMETER_COLLECTIVE_WAIT_BEGIN,  ///< the stream is about to wait for a collective
  FLOPMETER_COLLECTIVE_WAIT_END,
  FLOPMETER_BACKWARD_BEGIN,
  FLOPMETER_GRAPH_END,     ///< all gradients are enqueued; reductions may follow
  FLOPMETER_BACKWARD_END,  ///< backward is about to return
  FLOPMETER_BACKWARD_CALL  ///< backward is called; reported by the program, not by an adapter
};

/// The functions of libflopmeter.  Functions may be called from any thread and do not throw.
typedef struct FlopmeterHost {
  uint32_t abi_version;

  const uint8_t* phase;                  ///< what the training loop does; load it atomically
  const int32_t* collectives_under_way;  ///< load it atomically

  /// The counted operator for a dispatcher name, with or without overload ("aten::mm.out"), and the
  /// names of its parameters.  NULL if no rule of the catalog counts it live, or if there are too
  /// many operators.
  FlopmeterOp* (*find_op)(const char* name, const char* const* parameters, size_t count);
  /// For each parameter, the position at which the operator's rule reads it, or -1.
  void (*find_places)(const FlopmeterOp* op,
                      const char* const* parameters,
                      size_t count,
                      int32_t* places);
  /// The operators of other libraries that the catalog counts, which may not be loaded yet.
  void (*list_library_ops)(void* context, void (*add)(void* context, const char* name));
  /// A call whose arguments have no FLOP cost.
  void (*add_unsupported)(const FlopmeterOp* op);

  /// This thread's counters, for settle().
  void* (*thread_counters)(void);
  /// Moves pending work: FLOPMETER_PENDING_FIRST becomes `first`, FLOPMETER_PENDING becomes `rest`.
  void (*settle)(void* counters, uint8_t first, uint8_t rest);

  /// Collectives, and counted operations that run at the same time as one.
  void (*collective_began)(void);
  void (*collective_ended)(void);
  void (*operation_began)(void);
  void (*operation_ended)(void);

  /// The kind of a profiled operator (compute, memory, or unknown) and its rule, or NULL.
  uint8_t (*profile_kind)(const char* name, const void** rule);
  /// FLOPs and bytes of a profiled call by `rule`; returns a FlopmeterCost.
  int (*profile_cost)(const void* rule,
                      const FlopmeterArg* args,
                      size_t arg_count,
                      uint64_t* flops,
                      uint64_t* bytes);

  /// Reports a FlopmeterDeviceEvent; `bytes`: of a copy that begins.
  void (*device_event)(int event, int64_t bytes);
} FlopmeterHost;

/// The operators of one name, shape, and circumstance in a profile.
typedef struct FlopmeterProfileRow {
  const char* name;
  /// Of a compute operator's tensors: "[512,256] [256,1024]"; in device times also the largest
  /// tensor of any other.
  const char* shape;
  uint64_t calls;
  uint64_t flops;
  uint64_t bytes;
  double self_seconds;
  int64_t elements;  ///< of the largest argument, rounded down to a power of two
  uint8_t kind;      ///< FlopmeterOpKind
  uint8_t phase;
  uint8_t backward;
  uint8_t recompute;
  uint8_t across_devices;
} FlopmeterProfileRow;

/// Time without an operator.
typedef struct FlopmeterProfileIdle {
  uint64_t count;
  double seconds;
  uint8_t phase;
  uint8_t recompute;
  uint8_t stall;  ///< longer than dispatching the next operator takes
} FlopmeterProfileIdle;

/// An operator that no other called, or idle time without one, on the time axis of a profile.
typedef struct FlopmeterProfileSpan {
  const char* name;      ///< NULL: idle time
  double start_seconds;  ///< since the profile began
  double seconds;
  int32_t lane;  ///< thread; 0 in device times
  uint8_t kind;  ///< FlopmeterOpKind
  uint8_t phase;
} FlopmeterProfileSpan;

/// Receives a profile; called before end_profile() returns.
typedef struct FlopmeterProfileReceiver {
  void* context;
  void (*row)(void* context, const FlopmeterProfileRow* row);
  void (*idle)(void* context, const FlopmeterProfileIdle* span);
  /// The longest ones, in the order of time.
  void (*span)(void* context, const FlopmeterProfileSpan* span);
  /// `device_times`: of the kernels, not of the host.
  void (*totals)(
      void* context, double wall_seconds, int on_device, int device_times, int64_t omitted_spans);
} FlopmeterProfileReceiver;

/// Why an operator is not intercepted.
enum FlopmeterInterception {
  FLOPMETER_INTERCEPTED,
  FLOPMETER_NO_SUCH_OP,
  FLOPMETER_COMPOSITE_OP  ///< made of other operators, which are counted, or taken by others
};

/// The functions of an adapter.  Functions do not throw.
typedef struct FlopmeterAdapter {
  uint32_t abi_version;
  const char* framework_version;  ///< that it was compiled for

  /// Intercepts the operators that the catalog supports, and collectives.  Called once.
  void (*install)(void);
  /// Intercepts one more operator, by name.  Returns a FlopmeterInterception.
  int (*intercept)(const char* name, FlopmeterOp* op);
  void (*list_intercepted)(void* context, void (*add)(void* context, const char* name));
  /// Intercepts operators that were defined since the last call.  Call it while no operator runs.
  void (*find_new_ops)(void);
  /// Counts the operators inside this operator although a compiled graph calls it, whose own
  /// operators are counted with the graph.
  void (*open_op)(const char* name, const FlopmeterOp* op);

  /// Begins work that is counted as a whole, a Python function or a compiled graph: operators that
  /// it runs in this thread are part of it.  0 if it is not counted itself: nothing is, or it is
  /// part of other counted work.  Otherwise end_call() must follow.
  int (*begin_call)(int is_graph);
  void (*end_call)(void);
  /// Whether the thread is inside counted work.
  int (*inside_call)(void);
  /// The module in which this thread is, in its pass; FLOPMETER_MODULES_OFF if modules are not
  /// counted.
  uint32_t (*current_module)(void);
  /// Counts a call that succeeded.
  void (*count_call)(const FlopmeterOp* op,
                     const FlopmeterArg* args,
                     size_t arg_count,
                     const void* const* tensors,
                     const FlopmeterArg* output,
                     int32_t device,
                     uint8_t pass,
                     uint32_t module);
  /// Describes the tensor with this TensorImpl address; returns its device type.
  int32_t (*describe_tensor)(uintptr_t tensor, FlopmeterArg* arg);
  /// For FlopmeterCall::tensors: the tensor with this TensorImpl address, or NULL.
  const void* (*find_starts)(uintptr_t tensor);
  /// Copies the starts of packed sequences, a tensor as in FlopmeterCall::tensors, to the host
  /// without waiting for a device.  Calls of one group share the copy of a tensor.  NULL if that is
  /// impossible now (a capture), or if the tensor is on a device and `may_be_late` is 0.  The three
  /// functions are NULL if the adapter has none.
  void* (*copy_starts)(const void* tensor, uint64_t group, int may_be_late);
  /// 1 and the values, which live until the copy is released; 0 if the device has not reached the
  /// copy.  Training thread if it may be late.
  int (*read_starts)(void* copy, const int64_t** values, size_t* count);
  void (*release_starts)(void* copy);
  /// Adds users of counting, and of attribution to modules; without users operators run uncounted.
  void (*add_users)(int32_t counting, int32_t modules);
  /// Multiplies [rows, inner] by [inner, columns] `calls` times, counted or not, regardless of
  /// users; returns the nanoseconds that it took, negative if it failed.
  double (*run_matmuls)(int64_t rows, int64_t inner, int64_t columns, int32_t calls, int counted);

  /// Opens a module in this thread; returns a token that closes it and those left open inside.
  uint32_t (*enter_module)(uint32_t module);
  void (*leave_module)(uint32_t token);

  /// 0 if another profile runs.  `device_times`: those of the kernels if the device clock is open.
  int (*begin_profile)(double tiny_seconds, int device_times);
  /// Ends the profile.  0 if the device has not reached its end, or if more of it is to be read:
  /// call it again later, in the training thread.  A receiver that is NULL discards the profile.
  int (*end_profile)(const FlopmeterProfileReceiver* receiver);
  /// Device work of this thread's stream since the last operator does not belong to the profile.
  void (*exclude_from_profile)(void);

  /// Calls `begins` and `ends` around each backward of the hooked tensors in the calling thread.
  void* (*make_backward_hook)(void* context, void (*begins)(void*), void (*ends)(void*));
  void (*free_backward_hook)(void* hook);
  /// Hooks the tensor with this TensorImpl address: 1 on the host, 0 on a device, whose backward
  /// runs in another thread, -1 if it has no gradient.
  int (*hook_tensor)(void* hook, uintptr_t tensor);
  /// Whether a backward began in any thread since the last call or hook_tensor().
  int (*take_begun)(void* hook);

  /// The functions of the device clock are NULL if the adapter has none.
  /// The model trains on the device of the tensor with this TensorImpl address; its clock is
  /// opened.
  void (*use_device_of)(uintptr_t tensor);
  /// Opens the clock of the device that hooked tensors are on: 1 open, 0 no device is known yet,
  /// -1 the framework or the device does not time events.  Training thread.
  int (*open_device_clock)(void);
  /// Records an event on the thread's current stream.  0: none, for example during a capture.
  int (*record_device_event)(void** event, int64_t* stream);
  /// Training thread, in the order of the records: 1 and the device's clock if the device reached
  /// the event, which is released then; 0 if not; -1 if it failed.
  int (*read_device_event)(void* event, int64_t* device_nanoseconds);
  void (*release_device_event)(void* event);
  /// Reads the monotonic clock and the device's clock at one moment; 0 if that takes too long.
  int (*anchor_device_clock)(int64_t* host_nanoseconds, int64_t* device_nanoseconds);
  /// For a device without a delay kernel: measures work that takes its place.  Training thread.
  void (*prepare_device_delay)(void);
  /// Keeps the current stream busy for about this long; 0 if that is not possible.
  int (*delay_device)(double seconds);
  /// Adds to the number of graph captures under way, during which no event is recorded or read.
  /// The first call, with 0, states that captures are reported.
  void (*count_captures)(int change);

  /// A process group by name, on host memory; NULL if there is none.  Never freed.
  void* (*find_group)(const char* name);
  int (*group_rank)(void* group);
  int (*group_size)(void* group);
  /// Broadcasts rank 0's bytes.  0 after the deadline, a failure, or once `stop` returns 1.
  int (*broadcast)(void* group,
                   void* bytes,
                   size_t size,
                   int64_t deadline_milliseconds,
                   void* context,
                   int (*stop)(void* context));
} FlopmeterAdapter;

/// Defined by the adapter; NULL if it does not know the host's version.
const FlopmeterAdapter* flopmeter_torch_adapter(const FlopmeterHost* host);

#ifdef __cplusplus
}  // extern "C"
#endif

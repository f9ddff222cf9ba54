// SPDX-License-Identifier: Apache-2.0
//
// A model as a list of operations with shapes.  A family file describes its layers once;
// parameters, forward and backward FLOPs, recomputation, and trainable parameters follow from that
// description.
#pragma once

#include <flopmeter/catalog/operations.h>
#include <flopmeter/core/batch.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Parts of a model, for FLOPs and parameters.
enum class Component : std::uint8_t {
  attention_projections,
  attention_core,
  linear_attention,  ///< state-space scans and delta rules
  mlp,
  router,
  lm_head,
  vision,    ///< tower and projector
  mtp,       ///< multi-token prediction
  adapters,  ///< LoRA
  embedding_projections,
  embedding,
  norm,
  parameters,  ///< the whole model, for conventions without parts
};
inline constexpr std::size_t component_count = 13;
std::string_view to_string(Component component);

/// Kind of the rows that an operation processes.
enum class Rows : std::uint8_t {
  tokens,     ///< every token of every sequence
  patches,    ///< patches of images
  tower,      ///< rows of the vision tower: patches, and class tokens if it has them
  visual,     ///< visual tokens that the language model sees
  sequences,  ///< one token per sequence: a classifier's
};

/// A value passed between the operations of a layer.
struct Value {
  std::uint16_t id = 0;
};

/// Matmul with a weight.
struct Linear {
  std::string_view name;  ///< module name below the layer: "self_attn.q_proj"
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = false;
  Component component = Component::mlp;
  Rows rows = Rows::tokens;
  std::int64_t experts = 1;        ///< weights of this shape
  std::int64_t active = 1;         ///< number of them that each row uses
  bool every_expert_runs = false;  ///< transformers runs all and weights most by zero
  bool tied = false;               ///< the weight is the input embedding's
};

/// Pairs of attention, and the rows that they connect.
struct AttentionSpec {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_qk = 0;
  std::int64_t d_v = 0;
  enum class Over : std::uint8_t {
    text,
    frames,
    windows,
    images,
    packed,  ///< frames, which torch implementations pack into one row with a mask
  } over = Over::text;
  MaskPairs mask{};
  bool mask_tensor =
      false;  ///< torch implementations pass the mask as a tensor even if it is causal
  Component component = Component::attention_core;
};

/// One operation of a layer, or a parameter without a matmul.
struct Node {
  enum class Kind : std::uint8_t {
    linear,
    attention,
    convolution,
    parameters,
    embedding,
    scan,
    delta,
    sum
  };
  Kind kind = Kind::sum;
  Component component = Component::norm;
  Rows rows = Rows::tokens;
  bool bias = false;
  bool tied = false;
  bool last_saved = false;  ///< recomputation of a checkpoint stops before it
  bool keeps = false;       ///< sum: backward needs its inputs
  std::array<std::uint16_t, 3> inputs{};
  std::uint8_t input_count = 0;
  std::uint16_t output = 0;
  std::string_view name;
  WideInt in = 0;   ///< linear: k; convolution: weights per kernel; parameters: their number
  WideInt out = 0;  ///< linear: n
  std::int64_t experts = 1;
  std::int64_t active = 1;
  bool every_expert_runs = false;
  AttentionSpec attention{};
};

/// One kind of layer: operations in order, from value 0 to `output`.
struct LayerKind {
  std::vector<Node> nodes;
  std::uint16_t values = 1;
  std::uint16_t output = 0;
};

/// Consecutive layers of one kind.
struct LayerRun {
  enum class Stream : std::uint8_t { text, vision } stream = Stream::text;
  std::uint16_t kind = 0;
  std::string prefix;  ///< of parameter names; followed by a number if `numbered`
  bool numbered = false;
  std::int64_t first = 0;  ///< number of the first layer
  std::int64_t count = 1;
  bool checkpointed = false;  ///< recomputed under full activation checkpointing
  bool joins_vision = false;  ///< the vision stream enters before it
  bool mtp = false;           ///< multi-token prediction: excluded by default
  bool unread = false;        ///< its output is not read: it runs forward and has no gradient
};

/// Conversion of images to tokens.
struct VisionPlan {
  enum class Kind : std::uint8_t { none, fixed, grid } kind = Kind::none;
  std::int64_t patches = 0;        ///< fixed: patches per image
  std::int64_t class_tokens = 0;   ///< fixed: class tokens that the tower adds
  std::int64_t visual_tokens = 0;  ///< fixed: tokens per image in the language model
  bool cropped = false;            ///< fixed: the language model gets them without padding
  std::int64_t merge = 1;          ///< grid: patches merged along each side
  std::int64_t window = 0;         ///< grid: window side in patches; 0: none
};

/// Sizes for conventions with closed forms.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t d_qk = 0;
  std::int64_t d_v = 0;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  bool gated_mlp = false;
  bool tied = false;
  bool multimodal = false;
  std::int64_t window = 0;         ///< of windowed layers
  std::int64_t window_layers = 0;  ///< number of layers with a window
  std::int64_t experts = 0;
  std::int64_t experts_active = 0;
  std::int64_t scan_layers = 0;  ///< layers with a state-space scan
  bool hybrid = false;           ///< layers of one mixer each
  /// Layers at both ends that stay in bf16 under a recipe for 8 or 4 bits.
  std::int64_t wide_first = 0;
  std::int64_t wide_last = 0;
};

struct ParameterCounts {
  WideInt total = 0;
  WideInt active = 0;     ///< used per token: all but the unused experts
  WideInt embedding = 0;  ///< input embeddings, including positions
  WideInt trainable = 0;
  /// Elements that are not parameters but are included in the published number.
  std::optional<std::int64_t> buffers;
};

struct Model {
  std::string name;
  std::string family;
  ModelFacts facts;
  VisionPlan vision;
  std::vector<LayerKind> kinds;
  std::vector<LayerRun> runs;  ///< in execution order
  /// Set if the architecture is unknown: only the number of parameters.
  std::optional<WideInt> bare_parameters;
  std::optional<std::int64_t> buffers;  ///< see ParameterCounts
  std::vector<std::string> notes;       ///< remarks for the reader of the numbers
};

/// Builds one kind of layer.
class LayerBuilder {
 public:
  explicit LayerBuilder(LayerKind& kind) : kind_(kind) {}

  /// Input of the layer: the residual stream.
  static Value input() { return {0}; }
  Value linear(Value x, const Linear& spec);
  Value attention(Value q, Value k, Value v, const AttentionSpec& spec);
  /// Elementwise weights (norms, scales): `number` of them, and as many biases; returns x.
  Value parameters(Value x,
                   std::string_view name,
                   WideInt number,
                   bool bias = false,
                   Component component = Component::norm);
  /// Token or position table of `rows` x `width`.
  Value embedding(std::string_view name, std::int64_t rows, std::int64_t width);
  /// Patches to vectors, or a short convolution over tokens: `weights` elements in a kernel for
  /// each of `out` channels.
  Value convolution(Value x,
                    std::string_view name,
                    WideInt weights,
                    std::int64_t out,
                    bool bias,
                    Rows rows,
                    Component component = Component::vision);
  Value scan(Value x, std::string_view name, std::int64_t inner, std::int64_t state);
  Value delta_rule(
      Value x, std::string_view name, std::int64_t heads, std::int64_t d_k, std::int64_t d_v);
  /// Elementwise combination: residual addition, gating.
  Value sum(Value a, Value b);
  /// Elementwise product: backward needs both factors.
  Value product(Value a, Value b);
  /// Output of the layer.
  void output(Value x);

 private:
  Value add(Node node, std::initializer_list<Value> inputs);
  LayerKind& kind_;
};

/// Builds a model, in execution order.
class ModelBuilder {
 public:
  using Describe = std::function<void(LayerBuilder&)>;
  using DescribeKind = std::function<void(LayerBuilder&, int kind)>;
  using Stream = LayerRun::Stream;

  Model model;

  /// Single parts: embeddings, final norm, head, projector.
  LayerRun& once(std::string_view prefix, const Describe& describe, Stream stream = Stream::text);
  /// `count` equal layers "prefix0", "prefix1", …
  void layers(std::string_view prefix,
              std::int64_t count,
              const Describe& describe,
              Stream stream = Stream::text);
  /// Layers of several kinds, in this order; each kind is described once.
  void layers(std::string_view prefix,
              std::span<const int> kinds,
              const DescribeKind& describe,
              Stream stream = Stream::text,
              std::int64_t first = 0);
};

}  // namespace flopmeter

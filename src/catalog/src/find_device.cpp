// SPDX-License-Identifier: Apache-2.0
#include "device_name.h"

#include <flopmeter/catalog/devices.h>
#include <flopmeter/core/text.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace flopmeter {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}

/// Vendors and brands, which do not distinguish devices.
bool is_noise(std::string_view word) {
  static constexpr auto noise = std::to_array<std::string_view>({"amd",
                                                                 "aws",
                                                                 "corporation",
                                                                 "geforce",
                                                                 "google",
                                                                 "gpu",
                                                                 "graphics",
                                                                 "huawei",
                                                                 "instinct",
                                                                 "intel",
                                                                 "nvidia",
                                                                 "r",
                                                                 "radeon",
                                                                 "tesla",
                                                                 "tm"});
  return std::binary_search(noise.begin(), noise.end(), word);
}

bool all_digits(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
}

/// One spelling for equivalent words: "SXM4" and "SXM", "80G" and "80GB".
std::string canonical(std::string word) {
  if (word.size() == 4 && word.starts_with("sxm") && is_digit(word[3])) return "sxm";
  if (word.size() > 1 && word.back() == 'g' &&
      all_digits(std::string_view{word}.substr(0, word.size() - 1))) {
    return word + "b";
  }
  return word;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// All words of a device: name, aliases, unit.
std::vector<std::string> own_words(const Device& device) {
  std::vector<std::string> words = device_words(device.name + " " + device.unit);
  for (const std::string& alias : device.aliases) {
    for (std::string& word : device_words(alias)) words.push_back(std::move(word));
  }
  return words;
}

/// The word that a name must contain: the first with a digit ("a100", "4090"), else the first.
std::string model_word(const Device& device) {
  const std::vector<std::string> words = device_words(device.name);
  const auto numbered = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return std::any_of(word.begin(), word.end(), is_digit);
  });
  return numbered != words.end() ? *numbered : words.front();
}

bool is_named(const Device& device, const DeviceKey& key) {
  const auto same = [&](const std::string& name) {
    const DeviceKey own = device_key(name);
    return own.words == key.words || own.letters == key.letters;
  };
  return same(device.name) || std::any_of(device.aliases.begin(), device.aliases.end(), same);
}

/// Whether the name or model of a device begins with the key, including a digit: a vendor, or "a1",
/// matches too many.
bool begins(const Device& device, const DeviceKey& key) {
  constexpr std::size_t least = 4;
  if (key.letters.size() < least || std::none_of(key.letters.begin(), key.letters.end(), is_digit))
    return false;
  return device_key(device.name).letters.starts_with(key.letters) ||
         model_word(device).starts_with(key.letters);
}

bool fits(const Device& device, const std::vector<std::string>& words) {
  if (!contains(words, model_word(device))) return false;
  const std::vector<std::string> own = own_words(device);
  return std::all_of(
      words.begin(), words.end(), [&](const std::string& word) { return contains(own, word); });
}

/// A slice of a TPU pod named by its chip ("v5p-128", "32x v5e-256", "tpu-v5p-slice"): the number
/// of cores or chips is not part of the chip's name.
const Device* chip_of_slice(std::vector<std::string> words, std::span<const Device> among) {
  const std::size_t all = words.size();
  std::erase_if(words, [](std::string_view word) {
    const bool times = word.ends_with('x') && all_digits(word.substr(0, word.size() - 1));
    return times || all_digits(word) || word == "slice" || word == "podslice";
  });
  if (words.empty() || words.size() == all) return nullptr;
  const DeviceKey key{.words = words, .letters = {}};
  const auto chip = std::find_if(among.begin(), among.end(), [&](const Device& device) {
    return device.vendor == "Google" && (is_named(device, key) || fits(device, words));
  });
  return chip == among.end() ? nullptr : &*chip;
}

constexpr std::string_view recommendation =
    "set its dense peak in TFLOP/s, or measure it with `flopmeter peak`";

std::string quoted(std::string_view name) {
  constexpr std::size_t longest = 80;
  const std::string text = printable(name.substr(0, longest));
  return "'" + text + (name.size() > longest ? "…'" : "'");
}

Error ambiguous(std::string_view name, const std::vector<const Device*>& fitting) {
  std::string list;
  for (const Device* device : fitting) list.append(list.empty() ? "" : ", ").append(device->name);
  return {ErrorCode::invalid_argument,
          "device " + quoted(name) + " is ambiguous; the peaks differ between " + list};
}

/// Devices of the same model ("H100 64GB HBM2e", "Ascend 910B"), else similar spellings ("H10O").
std::string hint(const DeviceKey& key,
                 const std::vector<std::string>& words,
                 std::span<const Device> among) {
  std::string same_model;
  std::vector<std::string> spellings;
  for (const Device& device : among) {
    const std::string model = model_word(device);
    if (contains(words, model) || begins(device, key))
      same_model.append(same_model.empty() ? "" : ", ").append(device.name);
    spellings.push_back(device.name);
    if (device_words(device.name).size() > 1 && !contains(spellings, model))
      spellings.push_back(model);
  }
  if (!same_model.empty()) return ", which has " + same_model;
  std::string typed;
  for (const std::string& word : words) typed.append(typed.empty() ? "" : " ").append(word);
  return did_you_mean(typed, std::vector<std::string_view>{spellings.begin(), spellings.end()});
}

Error unknown(std::string_view name, std::span<const Device> among) {
  const std::string near = hint(device_key(name), device_words(name), among);
  return {ErrorCode::invalid_argument,
          "device " + quoted(name) + " is not in the catalog" + near +
              (near.ends_with('?') ? " Or " : "; ") + std::string{recommendation}};
}

bool same_peaks(const std::vector<const Device*>& list) {
  return std::all_of(list.begin(), list.end(), [&](const Device* device) {
    return device->dense == list.front()->dense &&
           device->sparse_doubles == list.front()->sparse_doubles;
  });
}

}  // namespace

std::vector<std::string> device_words(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (word == "gb" && !words.empty() && all_digits(words.back())) {
      words.back() += word;  // "80 GB" is "80GB"
    } else if (!word.empty() && !is_noise(word)) {
      word = canonical(std::move(word));
      if (!contains(words, word)) words.push_back(word);
    }
    word.clear();
  };
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_word_char(lower)) {
      word += lower;
    } else {
      finish();
    }
  }
  finish();
  return words;
}

DeviceKey device_key(std::string_view name) {
  DeviceKey key;
  key.words = device_words(name);
  for (const std::string& word : key.words) key.letters += word;
  std::sort(key.words.begin(), key.words.end());
  return key;
}

Result<const Device*> find_device(std::string_view name, std::span<const Device> among) {
  constexpr std::size_t longest = 256;  // longer than any name of a driver
  const DeviceKey key = device_key(name.substr(0, longest));
  if (key.words.empty() || name.size() > longest) {
    return Error{
        ErrorCode::invalid_argument,
        "device " + quoted(name) + " is not a device name; " + std::string{recommendation}};
  }
  for (const Device& device : among) {
    if (is_named(device, key)) return &device;
  }
  std::vector<const Device*> fitting;
  for (const Device& device : among) {
    if (fits(device, key.words)) fitting.push_back(&device);
  }
  if (fitting.empty()) {
    if (const Device* chip = chip_of_slice(key.words, among); chip != nullptr) return chip;
    return unknown(name, among);
  }
  if (!same_peaks(fitting)) return ambiguous(name, fitting);
  return fitting.front();
}

}  // namespace flopmeter

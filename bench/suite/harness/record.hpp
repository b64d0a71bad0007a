// SPDX-License-Identifier: BSD-3-Clause
//
// One result of a program: named fields in the order in which they were set.
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace suite {

// Empty: there is none, null in JSON.
using Value = std::variant<std::monostate, bool, long, double, std::string>;

class Record {
 public:
  struct Field {
    std::string name;
    Value value;

    void operator=(bool truth) { value = truth; }
    void operator=(std::integral auto number) { value = static_cast<long>(number); }
    void operator=(std::floating_point auto number) { value = static_cast<double>(number); }
    void operator=(const std::string& text) { value = text; }
    void operator=(const char* text) { value = std::string(text); }
    void operator=(std::monostate) { value = std::monostate{}; }
  };

  Field& operator[](const std::string& name) {
    for (Field& field : fields_) {
      if (field.name == name) return field;
    }
    return fields_.emplace_back(Field{name, {}});
  }
  const Value* find(const std::string& name) const {
    for (const Field& field : fields_) {
      if (field.name == name) return &field.value;
    }
    return nullptr;
  }
  std::string text(const std::string& name) const {
    const Value* const value = find(name);
    const auto* const words = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return words == nullptr ? "" : *words;
  }
  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

}  // namespace suite

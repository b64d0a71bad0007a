// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>

namespace tagline::tools {

// Where `tagline tune` writes unless told otherwise. Throws Error if there is no home.
std::filesystem::path usual_profile();

}  // namespace tagline::tools

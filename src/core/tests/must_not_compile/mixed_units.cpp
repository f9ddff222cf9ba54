// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/units.h>

using namespace flopmeter;

#ifdef WRONG
auto sum = Seconds{1} + Flops{1};
#else
auto sum = Flops{1} + Flops{1};
#endif

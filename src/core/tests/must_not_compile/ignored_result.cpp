// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/result.h>

flopmeter::Result<void> work();
void use();

void use() {
#ifdef WRONG
  work();
#else
  if (!work()) return;
#endif
}

// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"
#include "command.h"

#include <exception>
#include <new>

int main(int argc, char** argv) {
  try {
    return flopmeter::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return flopmeter::refuse({flopmeter::ErrorCode::io_error, "not enough memory"});
  } catch (const std::exception& error) {
    return flopmeter::refuse({flopmeter::ErrorCode::io_error, error.what()});
  }
}

# find_package(flopmeter COMPONENTS torch): flopmeter::torch, for programs that link libtorch themselves.
include("${CMAKE_CURRENT_LIST_DIR}/flopmeterTorchTargets.cmake")
add_library(flopmeter::torch INTERFACE IMPORTED)
set_target_properties(flopmeter::torch PROPERTIES INTERFACE_LINK_LIBRARIES flopmeter::flopmeter_torch)
set(flopmeter_torch_FOUND TRUE)

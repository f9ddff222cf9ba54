# libflopmeter.so: every module in one shared library, so that all users of one process share one set of counters.
get_property(modules GLOBAL PROPERTY FLOPMETER_MODULES)
get_property(includes GLOBAL PROPERTY FLOPMETER_INCLUDES)

get_property(dependencies GLOBAL PROPERTY FLOPMETER_PRIVATE)

list(TRANSFORM modules REPLACE "(.+)" "$<TARGET_OBJECTS:flopmeter_\\1>" OUTPUT_VARIABLE objects)
add_library(flopmeter SHARED ${objects})
add_library(flopmeter::flopmeter ALIAS flopmeter)
flopmeter_flags(flopmeter)
# Without VERSION there is one file, libflopmeter.so.0: a wheel stores each symbolic link as a copy.
set_target_properties(flopmeter PROPERTIES SOVERSION 0 LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(flopmeter PRIVATE $<BUILD_INTERFACE:${dependencies}>)
get_property(plugins GLOBAL PROPERTY FLOPMETER_PLUGINS)
list(TRANSFORM plugins REPLACE "(.+)" "\"flopmeter::\\1\"")
list(JOIN plugins ";\n      " plugins)
configure_file(${CMAKE_CURRENT_LIST_DIR}/libflopmeter.map.in ${CMAKE_CURRENT_BINARY_DIR}/libflopmeter.map @ONLY)
target_link_options(flopmeter PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/libflopmeter.map)
set_target_properties(flopmeter PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/libflopmeter.map)
foreach(include IN LISTS includes)
  target_include_directories(flopmeter INTERFACE $<BUILD_INTERFACE:${include}>)
  install(DIRECTORY ${include}/flopmeter DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endforeach()
target_include_directories(flopmeter INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS flopmeter EXPORT flopmeterTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT flopmeterTargets NAMESPACE flopmeter:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flopmeter)
include(CMakePackageConfigHelpers)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/flopmeterConfig.cmake.in
                              ${CMAKE_CURRENT_BINARY_DIR}/flopmeterConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flopmeter)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/flopmeterConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/flopmeterConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/flopmeterConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/flopmeter)

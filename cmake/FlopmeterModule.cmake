# flopmeter_module(<name> SOURCES ... [DEPENDS ...] [PRIVATE ...]): one library, one include root, one test binary.
#
# DEPENDS lists modules that the public headers include. PRIVATE lists modules and third-party libraries that only the
# sources include: users of this module do not see their headers.
function(flopmeter_flags target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-missing-field-initializers
                                           $<$<BOOL:${FLOPMETER_WERROR}>:-Werror>)
  if(FLOPMETER_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FLOPMETER_SANITIZE} -fno-sanitize-recover=undefined -g1)
    target_link_options(${target} PUBLIC -fsanitize=${FLOPMETER_SANITIZE})
  endif()
endfunction()

# Standard library headers dominate the compile time of small files. With FLOPMETER_PRECOMPILE (presets dev and
# release, `pip install`), each module parses them once. The presets tsan and tidy build without it, so a missing
# include fails there.
function(flopmeter_precompile target)
  if(FLOPMETER_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <chrono> <cmath> <functional> <map> <memory> <optional>
                              <span> <string> <string_view> <variant> <vector> ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)  # required by ccache
  endif()
endfunction()

# Paths differ between checkouts: only the file that needs one is compiled again if a cache has the others.
function(flopmeter_test_path source name path)
  set_property(SOURCE tests/${source} APPEND PROPERTY COMPILE_DEFINITIONS "${name}=\"${path}\"")
endfunction()

# Every public header must compile on its own.
function(flopmeter_header_checks target)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/include include/*.h)
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} id)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/header_checks/${id}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND units ${unit})
  endforeach()
  if(FLOPMETER_TESTS AND units AND NOT FLOPMETER_SANITIZE)
    add_library(${target}_headers OBJECT ${units})
    target_link_libraries(${target}_headers PRIVATE ${target})
    flopmeter_flags(${target}_headers)
    target_compile_options(${target}_headers PRIVATE -O0 -g0)
    set_target_properties(${target}_headers PROPERTIES CXX_CLANG_TIDY "")
  endif()
endfunction()

function(flopmeter_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  set(target flopmeter_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  add_library(flopmeter::${name} ALIAS ${target})
  flopmeter_flags(${target})
  flopmeter_precompile(${target})
  target_include_directories(${target} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY FLOPMETER_MODULES ${name})
  set(third_party ${arg_PRIVATE})
  list(FILTER third_party EXCLUDE REGEX "^flopmeter::")
  set_property(GLOBAL APPEND PROPERTY FLOPMETER_PRIVATE ${third_party})
  set_property(GLOBAL APPEND PROPERTY FLOPMETER_INCLUDES ${CMAKE_CURRENT_SOURCE_DIR}/include)
  flopmeter_header_checks(${target})

  file(GLOB tests CONFIGURE_DEPENDS tests/*_test.cpp)
  if(FLOPMETER_TESTS AND tests)
    add_executable(${target}_tests ${tests})
    flopmeter_flags(${target}_tests)
    # The library is optimized; test code is not, to compile fast.
    target_compile_options(${target}_tests PRIVATE -O0 -g1)
    target_precompile_headers(${target}_tests PRIVATE <gtest/gtest.h>)
    target_link_libraries(${target}_tests PRIVATE ${target} ${arg_PRIVATE} GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${target}_tests TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${name} TIMEOUT 300)
  endif()
endfunction()

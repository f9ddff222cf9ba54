# Finds the libraries that flopmeter is built with. One message names all that are missing and the command that installs them.
set(missing "")

# flopmeter_require(<package> <least version> <Debian and Ubuntu package>)
macro(flopmeter_require name version package)
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND OR "${${name}_VERSION}" VERSION_LESS "${version}")
    list(APPEND missing ${package})
  endif()
endmacro()

# Versions are compared here: the package file of simdjson accepts only the same minor version.
flopmeter_require(CLI11 0 libcli11-dev)
flopmeter_require(nlohmann_json 3.11 nlohmann-json3-dev)
flopmeter_require(yaml-cpp 0.7 libyaml-cpp-dev)
flopmeter_require(Boost 1.74 libboost-dev)
flopmeter_require(Threads 0 libc6-dev)
flopmeter_require(simdjson 3.0 libsimdjson-dev)
flopmeter_require(ZLIB 0 zlib1g-dev)
flopmeter_require(libdeflate 0 libdeflate-dev)
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "flopmeter: libraries are missing or too old; on Debian and Ubuntu run: apt-get install ${missing}")
endif()

# Compilers, dependencies, and the two ways a target is declared here.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
if(HOLDFAST_PORTABLE)
  include(Portable)
endif()
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(nlohmann_json 3.11 REQUIRED)

# The version is asked for before the language is enabled: an old nvcc may not even accept this host compiler.
set(HOLDFAST_WITH_CUDA 0)
if(HOLDFAST_CUDA)
  find_program(HOLDFAST_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
  set(nvcc_version 0)
  if(HOLDFAST_NVCC)
    execute_process(COMMAND ${HOLDFAST_NVCC} --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    if(nvcc_text MATCHES "release ([0-9]+\\.[0-9]+)")
      set(nvcc_version ${CMAKE_MATCH_1})
    endif()
  endif()
  if(NOT HOLDFAST_NVCC)
    message(STATUS "holdfast: no nvcc found (12.8 or newer is needed for CUDA): host-only build")
  elseif(nvcc_version VERSION_LESS 12.8)
    message(STATUS "holdfast: ${HOLDFAST_NVCC} is ${nvcc_version}, older than 12.8: host-only build")
  else()
    set(CMAKE_CUDA_COMPILER ${HOLDFAST_NVCC})
    # Hopper code for this machine's GPU of choice; PTX so that older and newer GPUs run the portable kernels.
    set(CMAKE_CUDA_ARCHITECTURES 90a-real 80-virtual)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      # CMake 3.25.1 (Debian 12) does not know that nvcc 12 and newer speak C++20.
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(HOLDFAST_WITH_CUDA 1)
    find_package(CUDAToolkit REQUIRED)
  endif()
endif()

add_library(holdfast_options INTERFACE)
target_compile_definitions(holdfast_options INTERFACE HOLDFAST_WITH_CUDA=${HOLDFAST_WITH_CUDA})
# Designated initialisers leave members out on purpose: they have defaults.
target_compile_options(holdfast_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror
                                  -march=${HOLDFAST_HOST_ARCH}>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers,-march=${HOLDFAST_HOST_ARCH}>)
# g++ 12 at -O3 sees overlapping copies inside std::string's own operator+ (GCC bug 105651).
target_compile_options(holdfast_options INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>)
target_include_directories(holdfast_options INTERFACE ${PROJECT_SOURCE_DIR})
if(HOLDFAST_SANITIZE)
  target_compile_options(holdfast_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HOLDFAST_SANITIZE} -fno-sanitize-recover=all
                                  -fno-omit-frame-pointer>)
  target_link_options(holdfast_options INTERFACE -fsanitize=${HOLDFAST_SANITIZE})
endif()

# Headers that nearly every file includes take half of a file's compile time. A compiler cache saves more, and
# does not go well with precompiled headers.
function(holdfast_precompile target)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  set(headers)
  foreach(header chrono functional map memory mutex string vector absl/status/statusor.h absl/strings/str_cat.h
                 absl/strings/str_format.h ${ARGN})
    list(APPEND headers "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
  endforeach()
  target_precompile_headers(${target} PRIVATE ${headers})
endfunction()

# holdfast_library(NAME SOURCES a.cc ... [CUDA_SOURCES b.cu ...] DEPENDS c ... [BUILD_DEPENDS d ...])
# A layer: target holdfast_NAME, alias holdfast::NAME. CUDA sources only where CUDA is built. BUILD_DEPENDS are
# header-only libraries that its sources use and its headers do not: who uses an installed layer needs none of them.
function(holdfast_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;CUDA_SOURCES;DEPENDS;BUILD_DEPENDS" ${ARGN})
  set(sources ${ARG_SOURCES})
  if(HOLDFAST_WITH_CUDA)
    list(APPEND sources ${ARG_CUDA_SOURCES})
  endif()
  add_library(holdfast_${name} STATIC ${sources})
  add_library(holdfast::${name} ALIAS holdfast_${name})
  target_link_libraries(holdfast_${name} PUBLIC $<BUILD_INTERFACE:holdfast_options> ${ARG_DEPENDS})
  foreach(library IN LISTS ARG_BUILD_DEPENDS)
    target_link_libraries(holdfast_${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HOLDFAST_LIBRARIES ${name})  # for Install.cmake
  holdfast_precompile(holdfast_${name})
endfunction()

# holdfast_test(NAME SOURCES a_test.cc ... DEPENDS holdfast::x ... [LABELS l ...])
# One binary a folder; one ctest entry, run on the host device.
function(holdfast_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  holdfast_precompile(${name} gmock/gmock.h gtest/gtest.h)
  # Half the build time, and the tests themselves are not slow.
  if(HOLDFAST_SANITIZE)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endfunction()

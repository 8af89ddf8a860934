# What `cmake --install` puts where, so that other projects can find_package(holdfast). Included once, after all
# layers are declared; a build that nobody installs is not changed by it.
#
#   lib/libholdfast_LAYER.a          each library declared by holdfast_library in a public layer
#   lib/cmake/holdfast/              holdfastConfig.cmake, its version, one file of targets for each library
#   include/holdfast/LAYER/...       the public headers: see PublicHeaders.cmake
#   bin/holdfast, libexec/holdfast/holdfast-scribble, share/doc/holdfast
#
# What a consumer of holdfast::LAYER gets: the include folder, C++20, HOLDFAST_WITH_CUDA as it was built, the libraries
# it links. Not our warnings, not -march. A sanitized build hands its -fsanitize on: abseil's containers have another
# layout under it, and the archives do not link without its runtime.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
# Layers that others may use. The rest are parts of our own programs.
set(public_layers ${HOLDFAST_LAYERS})
list(REMOVE_ITEM public_layers preload tools examples)

# The packages a consumer has to find for what a library links, and the libraries of ours among it.
function(holdfast_needs target packages_variable ours_variable)
  set(packages)
  set(ours)
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  foreach(link IN LISTS links)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" link "${link}")
    if(link MATCHES "^\\$<BUILD_INTERFACE:")
      continue()
    elseif(link MATCHES "^holdfast(::|_)(.+)$")
      list(APPEND ours ${CMAKE_MATCH_2})
    elseif(link MATCHES "^CUDA::")
      list(APPEND packages CUDAToolkit)
    elseif(link MATCHES "^(.+)::")
      list(APPEND packages ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES packages)
  set(${packages_variable} ${packages} PARENT_SCOPE)
  set(${ours_variable} ${ours} PARENT_SCOPE)
endfunction()

# Declared in the order of dependency, so that a consumer can read them in this order.
get_property(libraries GLOBAL PROPERTY HOLDFAST_LIBRARIES)
set(HOLDFAST_COMPONENTS "")
set(HOLDFAST_NEEDS "")
foreach(name IN LISTS libraries)
  set(target holdfast_${name})
  get_target_property(folder ${target} SOURCE_DIR)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${folder})
  string(REGEX REPLACE "/.*" "" layer "${folder}")
  if(NOT layer IN_LIST public_layers)
    continue()
  endif()
  list(APPEND HOLDFAST_COMPONENTS ${name})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE $<INSTALL_INTERFACE:cxx_std_20>)
  target_compile_definitions(${target} INTERFACE $<INSTALL_INTERFACE:HOLDFAST_WITH_CUDA=${HOLDFAST_WITH_CUDA}>)
  if(HOLDFAST_SANITIZE)
    target_compile_options(${target} INTERFACE
      $<INSTALL_INTERFACE:$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${HOLDFAST_SANITIZE}>>)
    target_link_options(${target} INTERFACE $<INSTALL_INTERFACE:-fsanitize=${HOLDFAST_SANITIZE}>)
  endif()
  install(TARGETS ${target} EXPORT holdfast-${name} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT holdfast-${name} NAMESPACE holdfast:: DESTINATION ${package_folder})

  holdfast_needs(${target} packages ours)
  string(APPEND HOLDFAST_NEEDS "set(holdfast_${name}_packages ${packages})\n"
                               "set(holdfast_${name}_libraries ${ours})\n")
endforeach()

file(RELATIVE_PATH HOLDFAST_INCLUDE_FROM_PACKAGE /prefix/${package_folder} /prefix/${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${PROJECT_SOURCE_DIR}/cmake/holdfastConfig.cmake.in
               ${PROJECT_BINARY_DIR}/package/holdfastConfig.cmake @ONLY)
# Before 1.0 a new minor version may break; so 0.2 is not a 0.1 that somebody asked for.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/holdfastConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/holdfastConfig.cmake
              ${PROJECT_BINARY_DIR}/package/holdfastConfigVersion.cmake
        DESTINATION ${package_folder})
if(HOLDFAST_PORTABLE)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/Portable.cmake DESTINATION ${package_folder})
endif()

install(CODE "set(HOLDFAST_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(HOLDFAST_HEADER_LAYERS \"${public_layers}\")
set(HOLDFAST_HEADER_FOLDER \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/holdfast\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake)

if(TARGET holdfast)
  install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET holdfast_preload_object)
  install(TARGETS holdfast_preload_object LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET holdfast-scribble)
  # The kit's neighbour, for programs that look for it: $<TARGET_FILE:holdfast::scribble>.
  set_target_properties(holdfast-scribble PROPERTIES EXPORT_NAME scribble)
  install(TARGETS holdfast-scribble EXPORT holdfast-testing RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/holdfast)
endif()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "results" EXCLUDE)
